"""The project that the demo agent works on: a small order service with logs and notes.

It is written anew into an empty folder, always the same to the byte, so that a recorded demo can
be made again.
"""

from __future__ import annotations

import random
from pathlib import Path

_README = """\
# orderly

A small order service: it takes orders, reserves stock, charges a card and sends a receipt.

    src/orderly/    the service
    tests/          unit tests, standard library only
    logs/           yesterday's server log and the audit log
    NOTES.md        what the team agreed on

Run the tests with `python3 -m unittest discover -s tests -t .`.
"""

_NOTES = """\
# Team notes

- Never edit anything under logs/: the auditors read those files.
- Prices are integers in cents. Always. No floats.
- A retry must use the same idempotency key, or a customer pays twice.
- The stock table is the truth; the cache may be wrong for up to 30 seconds.

Open questions
- Why did checkout stop for nine minutes yesterday around noon?
- Should receipts be sent before or after the stock is reserved?
"""

_MODELS = '''\
"""Orders, lines and money."""

from dataclasses import dataclass, field
from enum import Enum


class State(Enum):
    NEW = "new"
    RESERVED = "reserved"
    PAID = "paid"
    SENT = "sent"
    FAILED = "failed"


@dataclass(frozen=True)
class Line:
    sku: str
    count: int
    cents: int

    def total(self) -> int:
        return self.count * self.cents


@dataclass
class Order:
    number: int
    customer: str
    lines: list[Line] = field(default_factory=list)
    state: State = State.NEW

    def total(self) -> int:
        return sum(line.total() for line in self.lines)

    def move(self, state: State) -> None:
        # TODO: refuse moves that skip a state
        self.state = state
'''

_STOCK = '''\
"""Stock: a table that is the truth, and a cache that is fast."""

import time

CACHE_SECONDS = 30


class OutOfStock(Exception):
    pass


class Stock:
    def __init__(self, table: dict[str, int], clock=time.monotonic) -> None:
        self.table = table
        self.clock = clock
        self.cache: dict[str, tuple[float, int]] = {}

    def available(self, sku: str) -> int:
        now = self.clock()
        if sku in self.cache and now - self.cache[sku][0] < CACHE_SECONDS:
            return self.cache[sku][1]
        count = self.table.get(sku, 0)
        self.cache[sku] = (now, count)
        return count

    def reserve(self, sku: str, count: int) -> None:
        if self.available(sku) < count:
            raise OutOfStock(sku)
        # TODO: the cache is not updated here, so two orders can take the same last piece
        self.table[sku] -= count
'''

_PAYMENT = '''\
"""Charging cards through the payment provider."""

import uuid


class PaymentRefused(Exception):
    pass


class Provider:
    """Stands for the remote provider: remembers keys, so that a repeated charge is one charge."""

    def __init__(self) -> None:
        self.charges: dict[str, int] = {}

    def charge(self, key: str, cents: int) -> str:
        if cents <= 0:
            raise PaymentRefused("nothing to charge")
        self.charges.setdefault(key, cents)
        return key


def charge(provider: Provider, cents: int, retries: int = 2) -> str:
    for attempt in range(retries + 1):
        # TODO: a new key for each attempt means that a retry can charge twice
        key = str(uuid.uuid4())
        try:
            return provider.charge(key, cents)
        except TimeoutError:
            if attempt == retries:
                raise
    raise AssertionError("unreachable")
'''

_CHECKOUT = '''\
"""Checkout: reserve, charge, confirm. One order at a time for one customer."""

import logging

from .models import Order, State
from .payment import PaymentRefused, Provider, charge
from .stock import OutOfStock, Stock

log = logging.getLogger("orderly.checkout")


def checkout(order: Order, stock: Stock, provider: Provider) -> State:
    try:
        for line in order.lines:
            stock.reserve(line.sku, line.count)
    except OutOfStock as gone:
        log.error("order %s failed: %s is out of stock", order.number, gone)
        order.move(State.FAILED)
        return order.state
    order.move(State.RESERVED)
    try:
        charge(provider, order.total())
    except (PaymentRefused, TimeoutError) as refused:
        log.error("order %s failed: payment %s", order.number, refused)
        # TODO: give the reserved stock back
        order.move(State.FAILED)
        return order.state
    order.move(State.PAID)
    return order.state
'''

_RECEIPTS = '''\
"""Receipts as plain text."""

from .models import Order


def money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"


def receipt(order: Order) -> str:
    rows = [f"Order {order.number} for {order.customer}", ""]
    for line in order.lines:
        rows.append(f"{line.count:>4} x {line.sku:<24} {money(line.total()):>10}")
    rows += ["", f"{'Total':<31} {money(order.total()):>10}"]
    return "\\n".join(rows)
'''

_TESTS = """\
import unittest

from src.orderly.checkout import checkout
from src.orderly.models import Line, Order, State
from src.orderly.payment import Provider
from src.orderly.receipts import receipt
from src.orderly.stock import Stock


class CheckoutTest(unittest.TestCase):
    def test_paid(self):
        stock, provider = Stock({"tea": 3}), Provider()
        order = Order(1, "Ada", [Line("tea", 2, 450)])
        self.assertEqual(checkout(order, stock, provider), State.PAID)
        self.assertEqual(stock.table["tea"], 1)
        self.assertEqual(list(provider.charges.values()), [900])

    def test_out_of_stock(self):
        order = Order(2, "Bo", [Line("tea", 4, 450)])
        self.assertEqual(checkout(order, Stock({"tea": 3}), Provider()), State.FAILED)

    def test_receipt(self):
        order = Order(3, "Cy", [Line("tea", 2, 450), Line("cup", 1, 1205)])
        self.assertIn("21.05", receipt(order))


if __name__ == "__main__":
    unittest.main()
"""

_SKUS = ("tea", "cup", "kettle", "saucer", "spoon", "tin", "strainer", "tray")


def write_project(folder: Path) -> None:
    """Write the project into `folder`, which is made if need be. Existing files are left alone:
    a name that is taken raises FileExistsError, so that a user's folder is never overwritten."""
    for name, text in _files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as out:
            out.write(text)


def _files() -> dict[str, str]:
    return {
        "README.md": _README,
        "NOTES.md": _NOTES,
        "src/__init__.py": "",
        "src/orderly/__init__.py": "",
        "src/orderly/models.py": _MODELS,
        "src/orderly/stock.py": _STOCK,
        "src/orderly/payment.py": _PAYMENT,
        "src/orderly/checkout.py": _CHECKOUT,
        "src/orderly/receipts.py": _RECEIPTS,
        "tests/__init__.py": "",
        "tests/test_checkout.py": _TESTS,
        "logs/server.log": _server_log(),
        "logs/audit.log": _audit_log(),
    }


def _server_log(lines: int = 900) -> str:
    """A day of requests with an outage of the payment provider around noon."""
    dice = random.Random(20260704)
    rows = []
    for at in range(lines):
        second = 36_000 + at * 11
        clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
        number, sku = 7000 + at, dice.choice(_SKUS)
        outage = 43_140 <= second < 43_680
        if outage and dice.random() < 0.7:
            rows.append(
                f"{clock} ERROR checkout order={number} payment provider timed out after 30000 ms"
            )
        elif dice.random() < 0.02:
            rows.append(f"{clock} WARN  stock    order={number} sku={sku} cache older than 30 s")
        elif dice.random() < 0.03:
            rows.append(f"{clock} ERROR checkout order={number} sku={sku} out of stock")
        else:
            took = dice.randrange(12, 180)
            cents = dice.randrange(300, 9000)
            rows.append(
                f"{clock} INFO  checkout order={number} sku={sku} cents={cents} took={took} ms"
            )
    return "\n".join(rows) + "\n"


def _audit_log(lines: int = 160) -> str:
    dice = random.Random(11)
    rows = [
        f"2026-07-03T10:{at // 4:02d}:{at % 4 * 15:02d}Z charge id={dice.getrandbits(48):012x} "
        f"cents={dice.randrange(300, 9000)} result={dice.choice(('ok', 'ok', 'ok', 'refused'))}"
        for at in range(lines)
    ]
    return "\n".join(rows) + "\n"
