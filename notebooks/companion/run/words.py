"""Words of comparison from two numbers: a text takes them from results and never has them typed in."""

from companion.intervals import interval

#: What the first number is to the second: below it, equal, above it.
WORDS = {
    "below": ("below", "level with", "above"),
    "less": ("less than", "as much as", "more than"),
    "fewer": ("fewer than", "as many as", "more than"),
    "worse": ("worse than", "as well as", "better than"),
    "behind": ("behind", "level with", "ahead of"),
    "slower": ("slower than", "as fast as", "faster than"),
    "falls": ("falls", "stays", "rises"),
}


def than(ours, theirs, words, within=0.0):
    """Of `WORDS` those for two numbers, equal where they differ by at most `within`."""
    lower, equal, higher = WORDS[words]
    if abs(ours - theirs) <= within:
        return equal
    return lower if ours < theirs else higher


def certain(differences, words, within=0.0):
    """Of `WORDS` those for the mean of paired differences; equal where its 95% interval contains 0, too."""
    mean, low, high = interval(differences)
    return than(mean if low > 0 or high < 0 else 0.0, 0.0, words, within)


def enumerated(names):
    """a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def extremes(numbers):
    """Facts on numbers by name (Series): the least and the most, and whose they are."""
    return {
        "least": numbers.min(),
        "least_of": numbers.idxmin(),
        "most": numbers.max(),
        "most_of": numbers.idxmax(),
    }
