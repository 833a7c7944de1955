"""Tasks about texts and mappings; loops are written out, so that there is something to get wrong."""
# ruff: noqa: SIM102

from preplay.environments.code_repair._task import TaskList

TEXTS = TaskList()


@TEXTS.add(
    [(("Level",), True), (("abc",), False)], [("",), ("a",), ("ab",), ("Race car",), ("No x in Nixon",)]
)
def is_palindrome(text):
    """Whether a text reads the same backwards, ignoring case and everything but letters and digits."""
    letters = [c.lower() for c in text if c.isalnum()]
    return letters == letters[::-1]


@TEXTS.add([(("hello world",), 3), (("xyz",), 0)], [("",), ("AEIOU",), ("Rhythm and Blue",)])
def count_vowels(text):
    """Number of the letters a, e, i, o, u in either case."""
    count = 0
    for letter in text.lower():
        if letter in "aeiou":
            count += 1
    return count


@TEXTS.add([(("aaabb",), "a3b2"), (("abc",), "a1b1c1")], [("",), ("a",), ("aabbaa",), ("zzzzzzzzzzzz",)])
def run_length(text):
    """Each run of an equal letter as the letter and the length of the run."""
    if not text:
        return ""
    out = ""
    current = text[0]
    count = 0
    for letter in text:
        if letter == current:
            count += 1
        else:
            out += current + str(count)
            current = letter
            count = 1
    return out + current + str(count)


@TEXTS.add(
    [(("abc", 1), "bcd"), (("xyz", 3), "abc")], [("", 5), ("Hi!", 2), ("aZ", 27), ("abc", 0), ("bcd", -1)]
)
def caesar(text, shift):
    """Latin letters moved by shift places in the alphabet, around its end; all else stays."""
    out = ""
    for letter in text:
        if "a" <= letter <= "z":
            out += chr((ord(letter) - ord("a") + shift) % 26 + ord("a"))
        elif "A" <= letter <= "Z":
            out += chr((ord(letter) - ord("A") + shift) % 26 + ord("A"))
        else:
            out += letter
    return out


@TEXTS.add([(("([]){}",), True), (("(]",), False)], [("",), ("(",), (")",), ("([)]",), ("a(b)c",), ("((",)])
def is_balanced(text):
    """Whether every bracket ( [ { is closed by its partner in the right order; other letters are ignored."""
    partners = {")": "(", "]": "[", "}": "{"}
    stack = []
    for letter in text:
        if letter in "([{":
            stack.append(letter)
        elif letter in partners:
            if not stack or stack.pop() != partners[letter]:
                return False
    return not stack


@TEXTS.add(
    [(("listen", "silent"), True), (("abc", "abd"), False)],
    [("", ""), ("a", "aa"), ("Dusty", "study"), ("ab", "ba"), ("a b", "ab")],
)
def is_anagram(a, b):
    """Whether two texts have the same letters equally often, ignoring case and blanks."""
    first = sorted(a.lower().replace(" ", ""))
    second = sorted(b.lower().replace(" ", ""))
    return first == second


@TEXTS.add(
    [((["flow", "flower"],), "flow"), ((["a", "b"],), "")],
    [([],), (["abc"],), (["ab", "abc", "abd"],), (["x", ""],)],
)
def common_prefix(words):
    """The longest beginning that all words share; empty where there are no words."""
    if not words:
        return ""
    prefix = words[0]
    for word in words[1:]:
        while not word.startswith(prefix):
            prefix = prefix[:-1]
    return prefix


@TEXTS.add([(("the cat the",), {"the": 2, "cat": 1}), (("a",), {"a": 1})], [("",), ("A a",), ("x  y x",)])
def word_counts(text):
    """How often each word occurs, in lower case; words are separated by blanks."""
    counts = {}
    for word in text.lower().split():
        counts[word] = counts.get(word, 0) + 1
    return counts


@TEXTS.add([(("hello world",), "Hello World"), (("a",), "A")], [("",), ("ABC def",), ("x y z",)])
def title_case(text):
    """Words (separated by single blanks) with a capital first letter and the rest in lower case."""
    words = []
    for word in text.split():
        words.append(word[0].upper() + word[1:].lower())
    return " ".join(words)


@TEXTS.add([(("swiss",), "w"), (("aabb",), None)], [("",), ("a",), ("level",), ("aabbc",)])
def first_unique(text):
    """The first letter that occurs once, None where there is none."""
    for letter in text:
        if text.count(letter) == 1:
            return letter
    return None


@TEXTS.add(
    [(("kitten", "sitting"), 3), (("a", "a"), 0)],
    [("", ""), ("", "abc"), ("abc", ""), ("flaw", "lawn"), ("ab", "ba")],
)
def edit_distance(a, b):
    """Least number of inserted, deleted or replaced letters that turn a into b."""
    previous = list(range(len(b) + 1))
    for i in range(1, len(a) + 1):
        current = [i]
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            current.append(min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + cost))
        previous = current
    return previous[-1]


@TEXTS.add([(("hello", 3), "hel..."), (("hi", 5), "hi")], [("", 3), ("abc", 3), ("abcd", 3), ("abc", 0)])
def shorten(text, limit):
    """The text, or its first limit letters and "..." where it is longer."""
    if len(text) <= limit:
        return text
    return text[:limit] + "..."


@TEXTS.add([(("abcabcbb",), 3), (("bbb",), 1)], [("",), ("abc",), ("pwwkew",), ("dvdf",), ("abba",)])
def longest_distinct(text):
    """Length of the longest stretch of a text without a repeated letter."""
    best = 0
    start = 0
    last = {}
    for i, letter in enumerate(text):
        if letter in last and last[letter] >= start:
            start = last[letter] + 1
        last[letter] = i
        best = max(best, i - start + 1)
    return best


@TEXTS.add(
    [(("1.2.10", "1.2.9"), 1), (("1.0", "1"), 0)],
    [("1", "2"), ("1.1", "1.0.9"), ("2.0.1", "2"), ("0.9", "0.10"), ("3", "3")],
)
def compare_versions(a, b):
    """1, 0 or -1 as version a is newer than, equal to or older than b; missing parts count as 0."""
    first = [int(part) for part in a.split(".")]
    second = [int(part) for part in b.split(".")]
    while len(first) < len(second):
        first.append(0)
    while len(second) < len(first):
        second.append(0)
    if first == second:
        return 0
    return 1 if first > second else -1


@TEXTS.add([(({"a": 1, "b": 2},), {1: "a", 2: "b"}), (({},), {})], [({"x": 1, "y": 1},), ({"k": "v"},)])
def invert(mapping):
    """Keys and values exchanged; where values repeat, the first key stays."""
    inverted = {}
    for key, value in mapping.items():
        if value not in inverted:
            inverted[value] = key
    return inverted


@TEXTS.add(
    [((["eat", "tea", "bat"],), [["eat", "tea"], ["bat"]]), (([],), [])],
    [(["a"],), (["ab", "ba", "abc", "cab"],), (["", ""],)],
)
def group_anagrams(words):
    """Words with the same letters put together, groups and words in the order of their appearance."""
    groups = {}
    for word in words:
        key = "".join(sorted(word))
        groups.setdefault(key, []).append(word)
    return list(groups.values())


@TEXTS.add(
    [(("a=1;b=2",), {"a": "1", "b": "2"}), (("a=",), {"a": ""})],
    [("",), ("a=1;;b=2",), ("x=y=z",), ("a=1;a=2",)],
)
def parse_pairs(text):
    """Settings "key=value" separated by ";" as a mapping; empty parts are skipped, the last value of a key wins."""
    pairs = {}
    for part in text.split(";"):
        if not part:
            continue
        key, _, value = part.partition("=")
        pairs[key] = value
    return pairs


@TEXTS.add([(("3 4 +",), 7), (("5 1 2 + *",), 15)], [("2",), ("8 3 -",), ("2 3 4 * -",), ("7 2 - 3 *",)])
def postfix(text):
    """Value of an expression in postfix notation with + - * and whole numbers, separated by blanks."""
    stack = []
    for token in text.split():
        if token in ("+", "-", "*"):
            right = stack.pop()
            left = stack.pop()
            if token == "+":
                stack.append(left + right)
            elif token == "-":
                stack.append(left - right)
            else:
                stack.append(left * right)
        else:
            stack.append(int(token))
    return stack[0]


@TEXTS.add([(("IX",), 9), (("XIV",), 14)], [("I",), ("MCMXCIV",), ("XL",), ("III",), ("CD",)])
def from_roman(text):
    """The number that Roman digits stand for."""
    values = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
    total = 0
    for i in range(len(text)):
        value = values[text[i]]
        if i + 1 < len(text) and value < values[text[i + 1]]:
            total -= value
        else:
            total += value
    return total


@TEXTS.add([(("07:30",), 450), (("00:00",), 0)], [("23:59",), ("24:00",), ("12:60",), ("1:05",)])
def minutes_of_day(clock):
    """Minutes since midnight of a time "hours:minutes", -1 where hours exceed 23 or minutes 59."""
    hours, minutes = clock.split(":")
    if int(hours) > 23 or int(minutes) > 59:
        return -1
    return int(hours) * 60 + int(minutes)


@TEXTS.add([((3661,), "1:01:01"), ((59,), "0:00:59")], [(0,), (60,), (3600,), (86399,), (3599,)])
def clock_text(seconds):
    """Seconds as "hours:minutes:seconds", minutes and seconds with two digits."""
    hours = seconds // 3600
    minutes = seconds % 3600 // 60
    rest = seconds % 60
    return f"{hours}:{minutes:02d}:{rest:02d}"


@TEXTS.add(
    [(({"a": {"b": 1}}, "a.b"), 1), (({"a": 1}, "b"), None)],
    [({}, "a"), ({"a": {"b": {"c": 3}}}, "a.b.c"), ({"a": 1}, "a.b"), ({"a": {"b": 0}}, "a.b")],
)
def lookup(tree, path):
    """The value at a path of keys joined by "." in nested mappings, None where it does not exist."""
    node = tree
    for key in path.split("."):
        if not isinstance(node, dict) or key not in node:
            return None
        node = node[key]
    return node


@TEXTS.add(
    [(({"a": 1}, {"b": 2}), {"a": 1, "b": 2}), (({"a": 1}, {"a": 2}), {"a": 3})],
    [({}, {}), ({"x": 5}, {}), ({"a": 1, "b": 1}, {"b": 4, "c": 2})],
)
def add_counts(a, b):
    """Two mappings of counts added up."""
    total = dict(a)
    for key, count in b.items():
        total[key] = total.get(key, 0) + count
    return total


@TEXTS.add(
    [(([["ann", 3], ["bob", 5]],), "bob"), (([["ann", 3]],), "ann")],
    [([],), ([["a", 2], ["b", 2]],), ([["z", -1], ["y", -5]],)],
)
def winner(scores):
    """The name with the highest score, the first of them on a tie; None where there are none."""
    best_name = None
    best_score = None
    for name, score in scores:
        if best_score is None or score > best_score:
            best_name, best_score = name, score
    return best_name


@TEXTS.add(
    [(([["a", "b"], ["b", "c"]], "a"), ["a", "b", "c"]), (([], "x"), ["x"])],
    [
        ([["a", "b"], ["c", "d"]], "c"),
        ([["a", "b"], ["b", "a"]], "a"),
        ([["a", "c"], ["a", "b"], ["c", "d"]], "a"),
    ],
)
def reachable(edges, start):
    """Nodes that can be reached from start along directed edges, start first, breadth first, edges in order."""
    found = [start]
    position = 0
    while position < len(found):
        for source, target in edges:
            if source == found[position] and target not in found:
                found.append(target)
        position += 1
    return found
