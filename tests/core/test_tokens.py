from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core.tokenizer import CountedWith, load
from thresher.core.tokens import (
    CEILING,
    FLOOR,
    MIN_SAMPLES,
    MIN_TOKENS,
    WINDOW,
    Basis,
    CharClassCounter,
    Correction,
    Scope,
    TokenMismatch,
    Tokens,
    Usage,
)

KINDS = [(basis, scope) for basis in Basis for scope in Scope]

kinds = st.sampled_from(KINDS)
values = st.integers(0, 2_000_000)


@given(values, values, kinds)
def test_figures_of_one_kind_add_and_subtract(a: int, b: int, kind: tuple[Basis, Scope]) -> None:
    one, other = Tokens(a, *kind), Tokens(b, *kind)
    assert one + other == Tokens(a + b, *kind)
    assert one - other == a - b
    assert one.comparable(other)


@pytest.mark.parametrize("one", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_figures_of_different_basis_or_scope_are_never_mixed(
    one: tuple[Basis, Scope], other: tuple[Basis, Scope]
) -> None:
    if one == other:
        return
    left, right = Tokens(5, *one), Tokens(3, *other)
    assert not left.comparable(right)
    with pytest.raises(TokenMismatch, match="cannot subtract"):
        left - right
    with pytest.raises(TokenMismatch, match="cannot add"):
        left + right


def test_usage_total_is_the_providers_or_the_sum() -> None:
    assert Usage(100, 20).total == 120
    assert Usage(100, 20, total_tokens=150).total == 150
    assert Usage(100, 20, total_tokens=0).total == 0
    assert Usage(100).input == Tokens(100, Basis.REPORTED, Scope.REQUEST)


def test_usage_keeps_unknown_apart_from_zero_through_json() -> None:
    unknown, zero = Usage(100, 20), Usage(100, 20, cached_tokens=0)
    for usage in (unknown, zero):
        assert msgspec.json.decode(msgspec.json.encode(usage), type=Usage) == usage
    assert unknown != zero


# The estimator -----------------------------------------------------------------------------------

PROSE = """\
The harvest had been poor that year, and nobody in the village spoke of anything else. When the
miller finally opened his doors, people came with sacks half full and stood in the yard, looking at
the wheel. It turned slowly, as it always did, although the stream was low.
%
A compaction is worth having only if what it keeps is worth more than what it costs. Before you
raise the threshold, look at how many tokens each round adds, how long a summary takes to write, and
whether the model asks again for files that it had already read.
"""
CODE = """\
def merge(left: list[int], right: list[int]) -> list[int]:
    result = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            result.append(left[i])
            i += 1
        else:
            result.append(right[j])
            j += 1
    return result + left[i:] + right[j:]
%
export async function fetchUser(id) {
  const response = await fetch(`/api/users/${id}`);
  if (!response.ok) {
    throw new Error('request failed: ' + response.status);
  }
  return response.json();
}
%
static int count_lines(const char *path)
{
\tFILE *file = fopen(path, "r");
\tint lines = 0, c;
\tif (file == NULL)
\t\treturn -1;
\twhile ((c = fgetc(file)) != EOF)
\t\tlines += c == '\\n';
\tfclose(file);
\treturn lines;
}
"""
JSON = """\
{"type": "function_call", "name": "read_file", "call_id": "call_7Gx2", "arguments": {"path": "a"}}
{"type": "function_call_output", "call_id": "call_7Gx2", "output": "80 lines", "ok": true}
%
{
  "name": "example",
  "version": "1.4.2",
  "scripts": {
    "build": "tsc -p .",
    "test": "vitest run"
  },
  "dependencies": {
    "express": "^4.19.2",
    "zod": "^3.23.8"
  }
}
"""
LOGS = """\
2026-03-14T09:26:53.589Z INFO [http] GET /api/orders/48213 200 12ms id=9f86d081884c7d65
2026-03-14T09:26:54.102Z WARN [db] slow query: 1840ms SELECT * FROM orders
2026-03-14T09:26:55.337Z ERROR [worker-3] connection reset by peer, retrying in 5s
%
tests/core/test_context.py::test_groups_stay_whole PASSED                 [ 12%]
tests/core/test_context.py::test_order_is_checked PASSED                  [ 25%]
tests/core/test_bus.py::test_slow_reader_is_told FAILED                   [ 37%]
%
-rw-r--r-- 1 build build   4821 Mar 14 09:26 README.md
drwxr-xr-x 5 build build   4096 Mar 12 17:03 core
-rwxr-xr-x 1 build build  10240 Feb 28 11:45 run.sh
"""
CHINESE = """\
上下文窗口快要用完的时候，代理会把较早的对话压缩成一段摘要，并保留最近的用户消息。这样模型可以继续工作，但是有些细节可能会丢失，\
所以界面需要说明删除了什么以及为什么删除。
%
请先阅读项目的说明文件，然后运行全部测试。如果有测试失败，请找出原因并修改代码，不要删除测试。
%
函数 parse_line 在遇到空行时返回 None，调用者没有检查，因此第 42 行抛出异常。\
补丁加了判断，并补了两个用例。
"""
RUSSIAN = """\
Когда окно контекста почти заполнено, агент сжимает старую часть разговора в краткое изложение и
сохраняет последние сообщения пользователя. Некоторые подробности при этом теряются, поэтому
программа показывает, что было удалено и почему.
%
Сначала прочитайте описание проекта, затем запустите все тесты. Если какой-нибудь тест не проходит,
найдите причину и исправьте код.
%
Обработчик исключений журналирует сбои подключения, перезапускает зависшие процессы и
восстанавливает незавершённые транзакции из резервного хранилища.
"""
EMOJI = """\
🎉 done! ✅ build 🚀 release 🔥🔥 👍 tests pass ❌ one bug 🐛 fixed 💡 idea 📦 shipped ⚠️ careful
%
😀 😂 🎯 ✨ 📝 🔧 🧪 👍 🚀 🎉 💡 🐛 ✅ ❌
"""


@pytest.fixture(scope="module")
def tokenizer() -> CountedWith:
    return load()


@pytest.mark.parametrize(
    "texts",
    [PROSE, CODE, JSON, LOGS, CHINESE, RUSSIAN, EMOJI],
    ids=["prose", "code", "json", "logs", "chinese", "russian", "emoji"],
)
def test_the_estimate_is_within_a_tenth_of_the_tokenizer(
    texts: str, tokenizer: CountedWith
) -> None:
    estimator = CharClassCounter()
    guessed = [estimator.count_text(text) for text in texts.split("%\n")]
    counted = [tokenizer.count_text(text) for text in texts.split("%\n")]
    assert sum(guessed) / sum(counted) == pytest.approx(1, abs=0.10)
    for one, other in zip(guessed, counted, strict=True):
        assert one / other == pytest.approx(1, abs=0.30)


@given(st.text(max_size=300))
def test_the_estimate_is_deterministic_and_zero_only_for_nothing(text: str) -> None:
    count = CharClassCounter().count_text(text)
    assert count == CharClassCounter().count_text(text)
    assert (count == 0) == (text == "")


@given(st.text(min_size=1, max_size=300))
def test_no_text_is_estimated_beyond_its_bytes(text: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    assert CharClassCounter().count_text(text) <= max(2, 1.6 * size)


@pytest.mark.parametrize(
    "unit", ["a", "Z", " ", "\n", ".", "é", "好", "🎉", "\u0301", "a1-", "\x00"]
)
def test_the_estimate_grows_with_repeated_text_and_stays_bounded(unit: str) -> None:
    estimator = CharClassCounter()
    once, often = estimator.count_text(unit * 100), estimator.count_text(unit * 10_000)
    assert once < often <= 150 * once


def test_a_corrected_estimator_scales_and_replaces_the_ratio() -> None:
    text = "word " * 1000
    plain = CharClassCounter().count_text(text)
    assert CharClassCounter().corrected(1.5).count_text(text) == pytest.approx(1.5 * plain, abs=1)
    assert CharClassCounter(2.0).corrected(0.5).ratio == 0.5
    assert CharClassCounter().corrected(1.5).basis is Basis.ESTIMATED


@pytest.mark.parametrize("ratio", [0, -1.0, float("nan")])
def test_a_ratio_that_is_not_above_zero_is_refused(ratio: float) -> None:
    with pytest.raises(ValueError, match="above zero"):
        CharClassCounter(ratio)


# The session's own ratio -------------------------------------------------------------------------


def reported(value: int, scope: Scope = Scope.REQUEST) -> Tokens:
    return Tokens(value, Basis.REPORTED, scope)


def estimated(value: int, scope: Scope = Scope.REQUEST) -> Tokens:
    return Tokens(value, Basis.ESTIMATED, scope)


def fold(pairs: list[tuple[int, int]]) -> Correction:
    correction = Correction()
    for said, guessed in pairs:
        correction = correction.observe(reported(said), estimated(guessed))
    return correction


def test_there_is_no_correction_before_enough_samples() -> None:
    assert fold([(1200, 1000)] * (MIN_SAMPLES - 1)).ratio == 1.0
    assert fold([(1200, 1000)] * MIN_SAMPLES).ratio == pytest.approx(1.2)


def test_small_requests_are_passed_over() -> None:
    assert fold([(300, MIN_TOKENS - 1)] * 10) == Correction()


def test_usage_summed_over_several_calls_is_rejected_and_changes_nothing() -> None:
    good = fold([(1100, 1000)] * 5)
    jumped = good.observe(reported(8_800), estimated(1000))
    assert jumped.ratio == good.ratio
    assert (good.rejected, jumped.rejected) == (0, 1)


def test_a_few_plausible_outliers_do_not_move_the_ratio() -> None:
    assert fold([(1100, 1000)] * 6 + [(2900, 1000)] * 2).ratio == pytest.approx(1.1)


def test_the_ratio_follows_the_last_requests() -> None:
    changed = fold([(1100, 1000)] * 30 + [(1400, 1000)] * WINDOW)
    assert changed.ratio == pytest.approx(1.4)
    assert len(changed.ratios) == WINDOW


@given(st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**6)), max_size=40))
def test_the_ratio_always_stays_in_its_bounds(pairs: list[tuple[int, int]]) -> None:
    assert FLOOR <= fold(pairs).ratio <= CEILING


@pytest.mark.parametrize(
    ("said", "guessed"),
    [
        (estimated(1000), estimated(1000)),
        (reported(1000), reported(1000)),
        (reported(1000), Tokens(1000, Basis.COUNTED, Scope.REQUEST)),
        (reported(1000), estimated(1000, Scope.MESSAGES)),
    ],
)
def test_only_reported_and_estimated_of_one_scope_make_a_ratio(
    said: Tokens, guessed: Tokens
) -> None:
    with pytest.raises(TokenMismatch, match="one scope"):
        Correction().observe(said, guessed)
