import torch
import torch.distributed as dist


def solution(a, b):
    rows, k = a.shape
    gathered = torch.empty(rows * dist.get_world_size(), k, dtype=a.dtype, device=a.device)
    dist.all_gather_into_tensor(gathered, a)
    return gathered @ b
