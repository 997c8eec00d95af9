import torch.distributed as dist


def solution(x):
    y = x.clone()
    dist.all_reduce(y, op=dist.ReduceOp.SUM)
    return y
