"""Tasks about lists; loops are written out, so that there is something to get wrong."""
# ruff: noqa: SIM110

from preplay.environments.code_repair._task import TaskList

LISTS = TaskList()


@LISTS.add([(([3, 1, 2],), 3), (([5],), 5)], [([],), ([-3, -1, -2],), ([1, 9, 9],), ([0, 0],)])
def largest(xs):
    """The largest number of a list, None if it is empty."""
    if not xs:
        return None
    best = xs[0]
    for x in xs:
        if x > best:
            best = x
    return best


@LISTS.add(
    [(([3, 1, 2],), 2), (([4, 4, 5],), 4)], [([1],), ([],), ([2, 2],), ([9, 8, 7, 10],), ([-1, -2, -3],)]
)
def second_largest(xs):
    """The second largest distinct number of a list, None if there is none."""
    distinct = sorted(set(xs))
    if len(distinct) < 2:
        return None
    return distinct[-2]


@LISTS.add([(([1, 2, 3, 4],), [1, 3, 6, 10]), (([5],), [5])], [([],), ([-1, 1],), ([0, 0, 2],)])
def running_sum(xs):
    """Sums of the first 1, 2, ... numbers of a list."""
    total = 0
    sums = []
    for x in xs:
        total += x
        sums.append(total)
    return sums


@LISTS.add(
    [(([1, 2, 3], 1), [2, 3, 1]), (([1, 2, 3], 0), [1, 2, 3])],
    [([], 3), ([1, 2, 3], 4), ([1, 2], 2), ([1, 2, 3, 4], 3)],
)
def rotate_left(xs, k):
    """A list moved k places to the left, what falls off comes back at the end; k may exceed the length."""
    if not xs:
        return []
    k %= len(xs)
    return xs[k:] + xs[:k]


@LISTS.add(
    [(([1, 2, 3, 4, 5], 2), [[1, 2], [3, 4], [5]]), (([1], 3), [[1]])],
    [([], 2), ([1, 2], 1), ([1, 2, 3], 3), ([1, 2, 3, 4], 2)],
)
def chunks(xs, size):
    """A list cut into parts of the given size; the last one may be shorter."""
    parts = []
    for start in range(0, len(xs), size):
        parts.append(xs[start : start + size])
    return parts


@LISTS.add([(([1, 1, 2, 1],), [1, 2]), (([3, 3],), [3])], [([],), ([1, 2, 3],), ([2, 1, 2, 1],)])
def unique(xs):
    """The distinct elements in the order of their first appearance."""
    seen = []
    for x in xs:
        if x not in seen:
            seen.append(x)
    return seen


@LISTS.add(
    [(([1, 2, 4], 2), 1), (([1, 2, 4], 3), -1)],
    [([], 1), ([5], 5), ([1, 3, 5, 7], 7), ([1, 3, 5, 7], 1), ([1, 3, 5], 9), ([1, 3, 5], 0)],
)
def binary_search(xs, wanted):
    """Position of a number in a sorted list of distinct numbers, -1 where it is missing."""
    low, high = 0, len(xs) - 1
    while low <= high:
        middle = (low + high) // 2
        if xs[middle] == wanted:
            return middle
        if xs[middle] < wanted:
            low = middle + 1
        else:
            high = middle - 1
    return -1


@LISTS.add(
    [(([1, 3], [2, 4]), [1, 2, 3, 4]), (([], [1]), [1])],
    [([], []), ([1, 1], [1]), ([5, 6], [1, 2]), ([1, 2], [])],
)
def merge_sorted(a, b):
    """Two sorted lists merged into one sorted list."""
    merged = []
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] <= b[j]:
            merged.append(a[i])
            i += 1
        else:
            merged.append(b[j])
            j += 1
    return merged + a[i:] + b[j:]


@LISTS.add(
    [(([1, 2, 2, 3],), True), (([2, 1],), False)], [([],), ([1],), ([1, 3, 2],), ([3, 3],), ([1, 2, 1, 4],)]
)
def is_sorted(xs):
    """Whether no element is smaller than the one before it."""
    for i in range(1, len(xs)):
        if xs[i] < xs[i - 1]:
            return False
    return True


@LISTS.add([(([1, 2, 3, 4],), 2.5), (([3, 1, 2],), 2)], [([5],), ([],), ([1, 2],), ([9, 1, 5, 3, 7],)])
def median(xs):
    """The middle of the sorted numbers, the mean of the two middle ones for an even count; None if empty."""
    if not xs:
        return None
    ordered = sorted(xs)
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


@LISTS.add(
    [(([2, 7, 11], 9), [0, 1]), (([1, 2], 5), None)], [([], 0), ([3, 3], 6), ([1, 2, 3, 4], 7), ([5], 10)]
)
def two_sum(xs, target):
    """The first pair of positions i < j (as a list, smallest i, then j) with xs[i] + xs[j] == target, else None."""
    for i in range(len(xs)):
        for j in range(i + 1, len(xs)):
            if xs[i] + xs[j] == target:
                return [i, j]
    return None


@LISTS.add(
    [(([1, -2, 3, 4],), 7), (([-1, -2],), -1)], [([5],), ([2, -1, 2],), ([-3, 4, -1, 2],), ([1, 2, -9, 3],)]
)
def best_run(xs):
    """The greatest sum of neighbouring elements (at least one) of a list that is not empty."""
    best = current = xs[0]
    for x in xs[1:]:
        current = max(x, current + x)
        best = max(best, current)
    return best


@LISTS.add(
    [(([[1, 2], [3, 4]],), [[1, 3], [2, 4]]), (([[1]],), [[1]])], [([],), ([[1, 2, 3]],), ([[1], [2]],)]
)
def transpose(rows):
    """Rows and columns of a table exchanged; an empty table stays empty."""
    if not rows:
        return []
    columns = []
    for j in range(len(rows[0])):
        columns.append([row[j] for row in rows])
    return columns


@LISTS.add([(([1, [2, [3]]],), [1, 2, 3]), (([],), [])], [([[], [1]],), ([1, 2],), ([[[[5]]], 6],)])
def flatten(xs):
    """All numbers of nested lists in order."""
    flat = []
    for x in xs:
        if isinstance(x, list):
            flat.extend(flatten(x))
        else:
            flat.append(x)
    return flat


@LISTS.add(
    [(([1, 2, 3, 4, 5], 3), [2.0, 3.0, 4.0]), (([1, 3], 2), [2.0])], [([], 2), ([1, 2], 3), ([4, 4, 4], 1)]
)
def moving_average(xs, width):
    """Means of all windows of the given width; empty where the list is shorter than the window."""
    means = []
    for start in range(len(xs) - width + 1):
        means.append(sum(xs[start : start + width]) / width)
    return means


@LISTS.add([(([3, 1, 3, 2],), 3), (([1, 2],), 1)], [([],), ([2, 2, 1, 1],), ([5],), ([1, 2, 2],)])
def most_common(xs):
    """The most frequent element, the earliest of them on a tie; None if empty."""
    best = None
    best_count = 0
    for x in xs:
        count = xs.count(x)
        if count > best_count:
            best, best_count = x, count
    return best


@LISTS.add(
    [(([1, 2, 3, 4], 2), [4, 3]), (([5, 1], 1), [5])], [([], 2), ([1, 2], 0), ([1, 2], 5), ([2, 2, 1], 2)]
)
def top(xs, k):
    """The k largest numbers in falling order; all of them where there are fewer."""
    ordered = sorted(xs, reverse=True)
    if k >= len(ordered):
        return ordered
    return ordered[:k]


@LISTS.add(
    [(([[1, 3], [2, 4], [6, 7]],), [[1, 4], [6, 7]]), (([[1, 2]],), [[1, 2]])],
    [([],), ([[1, 2], [2, 3]],), ([[5, 6], [1, 9]],), ([[1, 2], [4, 5]],)],
)
def merge_intervals(intervals):
    """Intervals [start, end] that touch or overlap joined, sorted by start."""
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


@LISTS.add([(([7, 1, 5, 3, 6],), 5), (([5, 4],), 0)], [([],), ([1],), ([2, 4, 1, 2],), ([1, 9],)])
def best_profit(prices):
    """The greatest gain of buying once and selling once later, 0 where there is none."""
    if not prices:
        return 0
    lowest = prices[0]
    profit = 0
    for price in prices:
        lowest = min(lowest, price)
        profit = max(profit, price - lowest)
    return profit


@LISTS.add([(([0, 1, 0, 2],), [1, 2, 0, 0]), (([1],), [1])], [([],), ([0, 0],), ([3, 0, 2],), ([1, 2, 3],)])
def zeros_last(xs):
    """The list with all zeros moved to the end, the rest in order."""
    rest = [x for x in xs if x != 0]
    return rest + [0] * (len(xs) - len(rest))


@LISTS.add([(([1, 2, 3],), [6, 3, 2]), (([4, 5],), [5, 4])], [([0, 2, 3],), ([0, 0, 1],), ([7],), ([],)])
def product_except_self(xs):
    """For each position the product of all other numbers (1 where there are none)."""
    products = []
    for i in range(len(xs)):
        product = 1
        for j in range(len(xs)):
            if j != i:
                product *= xs[j]
        products.append(product)
    return products
