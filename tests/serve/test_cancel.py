"""Clients that leave, at every moment: afterwards every counter of open work is exactly 0."""

from __future__ import annotations

import json
import random
import socket
import time

import pytest

from tests.service import Service, chat

pytestmark = [pytest.mark.serve, pytest.mark.timeout(280)]


def leave(service: Service, count: int, seed: int) -> None:
    """Open `count` requests, half of them streaming, more than the engines run; drop all within 50 ms."""
    draw = random.Random(seed)
    sockets = []
    for number in range(count):
        pool = ("speculative", "plain")[number % 2]
        body = json.dumps(
            chat("Tell a story", max_tokens=400, ignore_eos=True, stream=number % 4 < 2)
        ).encode()
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            f"x-twinpool-pool: {pool}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        connection = socket.create_connection(("127.0.0.1", service.port))
        connection.sendall(head.encode() + body)
        sockets.append(connection)
    time.sleep(draw.choice([0.0, 0.3, 1.0]))
    draw.shuffle(sockets)
    for connection in sockets:
        connection.close()


def back_to_normal(service: Service) -> None:
    service.wait(service.idle, 15, "every counter at 0")
    time.sleep(1.2)  # one more report: it stays so
    assert service.idle()
    for number in range(50):
        tier = ("priority", "flex")[number % 2]
        assert service.post(chat("Hi", max_tokens=2, service_tier=tier)).status_code == 200


def test_two_rounds_of_leaving_clients(service: Service) -> None:
    """Case A19 in short: 200 clients leave mid-stream or queued; nothing is left running."""
    for seed in range(2):
        leave(service, 200, seed)
    back_to_normal(service)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_ten_rounds_of_leaving_clients(service: Service) -> None:
    """Case A19: ten rounds of 200, each back to exactly 0."""
    for seed in range(10):
        leave(service, 200, seed)
        back_to_normal(service)


def test_counters_return_to_zero_after_every_kind_of_end(service: Service) -> None:
    """Case B1 in short: good, 4xx, refused, aborted; then idle, never negative."""
    mixed(service, 150)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_thousand_mixed_requests(service: Service) -> None:
    """Case B1: a thousand of them."""
    mixed(service, 1000)


def mixed(service: Service, count: int) -> None:
    for number in range(count):
        kind = number % 5
        if kind == 0:
            assert service.post(chat("Hi", max_tokens=2)).status_code == 200
        elif kind == 1:
            assert service.post(chat("word " * 3000)).status_code == 400
        elif kind == 2:
            assert service.post(chat("Hi", model="nope")).status_code == 404
        elif kind == 3:
            with socket.create_connection(("127.0.0.1", service.port)) as connection:
                connection.sendall(
                    b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n{"
                )
        else:
            leave(service, 2, number)
    service.wait(service.idle, 15, "every counter at 0")
