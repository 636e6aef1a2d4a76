"""The kernel's transport keeps the contract, on both loops it may run on."""

import asyncio

import uvloop
from aiperf.engine.transport import KernelTransport
from aiperf.testing import TransportContract


class TestKernelTransportOnUvloop(TransportContract):
    transport = KernelTransport
    loop_factory = uvloop.new_event_loop


class TestKernelTransportOnAsyncio(TransportContract):
    transport = KernelTransport
    loop_factory = asyncio.new_event_loop
