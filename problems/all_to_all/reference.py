import torch
import torch.distributed as dist


def solution(x):
    y = torch.empty_like(x)
    dist.all_to_all_single(y, x)
    return y
