import torch
import torch.distributed as dist


def solution(x):
    world = dist.get_world_size()
    positions, heads, width = x.shape
    by_rank = torch.empty(world, positions // world, heads, width, dtype=x.dtype, device=x.device)
    dist.all_to_all_single(by_rank.view_as(x), x)
    return by_rank.transpose(0, 1).reshape(positions // world, world * heads, width)
