"""Tasks about numbers; loops are written out, so that there is something to get wrong."""

from preplay.environments.code_repair._task import TaskList

NUMBERS = TaskList()


@NUMBERS.add([((5, 0, 3), 3), ((-2, 0, 3), 0)], [(2, 0, 3), (0, 0, 3), (3, 0, 3), (-5, -4, -1), (0, -4, -1)])
def clamp(x, low, high):
    """Limit x to the range from low to high."""
    if x < low:
        return low
    if x > high:
        return high
    return x


@NUMBERS.add([((12, 18), 6), ((7, 5), 1)], [(0, 4), (4, 0), (9, 3), (100, 75), (1, 1), (17, 51)])
def greatest_divisor(a, b):
    """The greatest common divisor of two numbers that are not negative; of 0 and n it is n."""
    while b != 0:
        a, b = b, a % b
    return a


@NUMBERS.add([((7,), True), ((9,), False)], [(2,), (1,), (0,), (25,), (4,), (97,), (49,), (-3,)])
def is_prime(n):
    """Whether n is a prime number; numbers below 2 are not."""
    if n < 2:
        return False
    divisor = 2
    while divisor * divisor <= n:
        if n % divisor == 0:
            return False
        divisor += 1
    return True


@NUMBERS.add([((5,), 120), ((3,), 6)], [(0,), (1,), (10,), (7,)])
def factorial(n):
    """The product of the numbers from 1 to n; 1 for n = 0."""
    result = 1
    for i in range(2, n + 1):
        result *= i
    return result


@NUMBERS.add([((6,), 8), ((1,), 1)], [(0,), (2,), (10,), (20,)])
def fibonacci(n):
    """The n-th Fibonacci number, where the 0th is 0 and the first is 1."""
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@NUMBERS.add([((1234,), 10), ((7,), 7)], [(0,), (-15,), (9999,), (100,)])
def digit_sum(n):
    """The sum of the decimal digits of n; the sign is ignored."""
    n = abs(n)
    total = 0
    while n > 0:
        total += n % 10
        n //= 10
    return total


@NUMBERS.add([((2000,), True), ((1900,), False)], [(2024,), (2023,), (1600,), (100,), (4,)])
def is_leap_year(year):
    """Whether a year of the Gregorian calendar has a 29th of February."""
    if year % 400 == 0:
        return True
    if year % 100 == 0:
        return False
    return year % 4 == 0


@NUMBERS.add([((6,), 3), ((1,), 0)], [(8,), (27,), (7,), (2,)])
def collatz_like(n):
    """Steps to reach 1 when an even n is halved and an odd n is lowered by one."""
    steps = 0
    while n > 1:
        if n % 2 == 0:
            n //= 2
        else:
            n -= 1
        steps += 1
    return steps


@NUMBERS.add([((28,), True), ((12,), False)], [(6,), (1,), (496,), (0,), (2,)])
def is_perfect(n):
    """Whether n equals the sum of its divisors smaller than n; 0 and 1 do not."""
    if n < 2:
        return False
    total = 1
    for divisor in range(2, n // 2 + 1):
        if n % divisor == 0:
            total += divisor
    return total == n


@NUMBERS.add([((2, 10), 1024), ((3, 0), 1)], [(5, 1), (0, 3), (-2, 3), (7, 4), (1, 100)])
def power(base, exponent):
    """base to the exponent, which is not negative."""
    result = 1
    while exponent > 0:
        if exponent % 2 == 1:
            result *= base
        base *= base
        exponent //= 2
    return result


@NUMBERS.add([((10,), "1010"), ((1,), "1")], [(0,), (2,), (255,), (8,)])
def to_binary(n):
    """The binary digits of n as text, without leading zeros; "0" for 0."""
    if n == 0:
        return "0"
    digits = ""
    while n > 0:
        digits = str(n % 2) + digits
        n //= 2
    return digits


@NUMBERS.add([((17,), 4), ((16,), 4)], [(0,), (1,), (24,), (25,), (99,)])
def integer_root(n):
    """The greatest whole number whose square is at most n."""
    root = 0
    while (root + 1) * (root + 1) <= n:
        root += 1
    return root


@NUMBERS.add([((153,), True), ((10,), False)], [(0,), (9,), (370,), (100,), (9474,)])
def is_narcissistic(n):
    """Whether n is the sum of its digits, each to the power of the number of digits."""
    digits = str(n)
    total = 0
    for digit in digits:
        total += int(digit) ** len(digits)
    return total == n


@NUMBERS.add([((3, 4), 12), ((4, 6), 12)], [(5, 5), (1, 7), (0, 3), (21, 6)])
def least_multiple(a, b):
    """The least common multiple of two numbers that are not negative; 0 if one is 0."""
    if a == 0 or b == 0:
        return 0
    multiple = max(a, b)
    while multiple % a != 0 or multiple % b != 0:
        multiple += 1
    return multiple


@NUMBERS.add([((12,), [2, 2, 3]), ((7,), [7])], [(1,), (2,), (60,), (49,), (97,)])
def prime_factors(n):
    """The prime factors of n in rising order, with repetition; empty for 1."""
    factors = []
    divisor = 2
    while n > 1:
        while n % divisor == 0:
            factors.append(divisor)
            n //= divisor
        divisor += 1
    return factors


@NUMBERS.add([((90,), "A"), ((75,), "C")], [(80,), (70,), (60,), (59,), (100,), (0,), (89,)])
def grade(points):
    """A from 90 points, B from 80, C from 70, D from 60, else F."""
    if points >= 90:
        return "A"
    if points >= 80:
        return "B"
    if points >= 70:
        return "C"
    if points >= 60:
        return "D"
    return "F"


@NUMBERS.add(
    [((3, 4, 5), "scalene"), ((2, 2, 3), "isosceles")],
    [(1, 1, 1), (1, 2, 3), (0, 1, 1), (3, 2, 2), (2, 3, 2)],
)
def triangle_kind(a, b, c):
    """ "equilateral", "isosceles" or "scalene"; "none" where the sides form no triangle."""
    a, b, c = sorted([a, b, c])
    if a <= 0 or a + b <= c:
        return "none"
    if a == c:
        return "equilateral"
    if a == b or b == c:
        return "isosceles"
    return "scalene"


@NUMBERS.add([((4,), "IV"), ((9,), "IX")], [(1,), (14,), (40,), (90,), (1994,), (3888,)])
def to_roman(n):
    """A number from 1 to 3999 in Roman digits."""
    pairs = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC")]
    pairs += [(50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]
    text = ""
    for value, digits in pairs:
        while n >= value:
            text += digits
            n -= value
    return text
