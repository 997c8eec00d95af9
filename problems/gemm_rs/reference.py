import torch
import torch.distributed as dist


def solution(a, b):
    partial = a @ b
    rows, n = partial.shape
    c = torch.empty(rows // dist.get_world_size(), n, dtype=a.dtype, device=a.device)
    dist.reduce_scatter_tensor(c, partial)
    return c
