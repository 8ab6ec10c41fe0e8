"""DenseNet-121 on random images with DistributedDataParallel: a real training loop for `ringside bench profilers --train`.

The network of Huang, Liu, van der Maaten and Weinberger (2017): a stem, four blocks of 6, 12, 24 and 16 dense layers with
a growth of 32, three transitions that halve channels and resolution, a classifier of 1000 classes. Plain PyTorch: nothing
else has to be installed. Ranks can share one GPU: the launcher then gives each its own NCCL_HOSTID.

Rank and address come from the environment: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT. Every rank writes OUT/train-RANK.json:
{"rank": 0, "ranks": 2, "pid": 1, "host": "node01", "gpu": "NVIDIA H200", "parameters": 7978856, "steps": 20,
 "torch": "2.9.0", "nccl": "2.28.9", "epochs": [{"begin_ns": 1700000000000000000, "ns": 1234567890}, ...]}
Wall times start and end with the GPU idle and the ranks synchronized. With --cpu it runs over gloo, to test the script.
"""

import argparse
import json
import os
import socket
import time

import torch
import torch.distributed as dist
from torch import nn

PARAMETERS = 7978856
GROWTH = 32
BLOCKS = (6, 12, 24, 16)
STEM = 64
CLASSES = 1000
# In a dense layer, the 1x1 convolution has this many times GROWTH channels.
WIDTH = 4


class DenseLayer(nn.Module):
    """Adds GROWTH channels to its input."""

    def __init__(self, channels):
        super().__init__()
        self.add = nn.Sequential(
            nn.BatchNorm2d(channels), nn.ReLU(inplace=True),
            nn.Conv2d(channels, WIDTH * GROWTH, 1, bias=False),
            nn.BatchNorm2d(WIDTH * GROWTH), nn.ReLU(inplace=True),
            nn.Conv2d(WIDTH * GROWTH, GROWTH, 3, padding=1, bias=False))

    def forward(self, features):
        return torch.cat((features, self.add(features)), 1)


def transition(channels):
    return [nn.BatchNorm2d(channels), nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels // 2, 1, bias=False), nn.AvgPool2d(2)]


def densenet121():
    layers = [nn.Conv2d(3, STEM, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(STEM),
              nn.ReLU(inplace=True), nn.MaxPool2d(3, stride=2, padding=1)]
    channels = STEM
    for index, depth in enumerate(BLOCKS):
        for _ in range(depth):
            layers.append(DenseLayer(channels))
            channels += GROWTH
        if index + 1 < len(BLOCKS):
            layers += transition(channels)
            channels //= 2
    layers += [nn.BatchNorm2d(channels), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1),
               nn.Flatten(), nn.Linear(channels, CLASSES)]
    return nn.Sequential(*layers)


def options():
    parser = argparse.ArgumentParser(description="DenseNet-121 on random images")
    parser.add_argument("--out", required=True, help="directory for train-RANK.json")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20, help="steps per epoch")
    parser.add_argument("--batch", type=int, default=16, help="images per rank and step")
    parser.add_argument("--size", type=int, default=64, help="height and width of an image")
    parser.add_argument("--cpu", action="store_true", help="gloo, without a GPU")
    return parser.parse_args()


class Trainer:
    """One rank."""

    def __init__(self, wanted):
        self.wanted = wanted
        self.rank = int(os.environ["RANK"])
        self.ranks = int(os.environ["WORLD_SIZE"])
        if wanted.cpu:
            self.device, self.local = torch.device("cpu"), None
            dist.init_process_group("gloo")
        else:
            self.local = int(os.environ.get("LOCAL_RANK", self.rank)) % torch.cuda.device_count()
            self.device = torch.device("cuda", self.local)
            torch.cuda.set_device(self.device)
            dist.init_process_group("nccl")
        torch.manual_seed(1)
        network = densenet121().to(self.device)
        self.parameters = sum(p.numel() for p in network.parameters())
        assert self.parameters == PARAMETERS, "%d parameters" % self.parameters
        self.model = nn.parallel.DistributedDataParallel(
            network, device_ids=None if wanted.cpu else [self.local])
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.loss = nn.CrossEntropyLoss()
        torch.manual_seed(1000 + self.rank)
        self.images = torch.randn(wanted.batch, 3, wanted.size, wanted.size, device=self.device)
        self.labels = torch.randint(0, CLASSES, (wanted.batch,), device=self.device)

    def together(self):
        """Waits until the GPU is idle and all ranks have arrived."""
        if not self.wanted.cpu:
            torch.cuda.synchronize()
        dist.barrier(**({} if self.wanted.cpu else {"device_ids": [self.local]}))
        if not self.wanted.cpu:
            torch.cuda.synchronize()

    def epoch(self):
        self.together()
        begin_ns, began = time.time_ns(), time.perf_counter_ns()
        for _ in range(self.wanted.steps):
            self.optimizer.zero_grad(set_to_none=True)
            self.loss(self.model(self.images), self.labels).backward()
            self.optimizer.step()
        self.together()
        return {"begin_ns": begin_ns, "ns": time.perf_counter_ns() - began}

    def result(self, epochs):
        nccl = "" if self.wanted.cpu else ".".join(map(str, torch.cuda.nccl.version()))
        gpu = "" if self.wanted.cpu else torch.cuda.get_device_name(self.device)
        return {"rank": self.rank, "ranks": self.ranks, "pid": os.getpid(),
                "host": socket.gethostname(), "gpu": gpu, "parameters": self.parameters, "steps": self.wanted.steps,
                "torch": torch.__version__, "nccl": nccl, "epochs": epochs}


def main():
    wanted = options()
    trainer = Trainer(wanted)
    epochs = [trainer.epoch() for _ in range(wanted.epochs)]
    path = os.path.join(wanted.out, "train-%d.json" % trainer.rank)
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(trainer.result(epochs), file)
    os.rename(path + ".part", path)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
