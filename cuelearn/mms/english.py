"""English as far as captions need it: words of a text, inflections of verbs, tables of small words."""

import re
import unicodedata
from functools import lru_cache

WORD = re.compile(r"[\w\u0300-\u036f]")
#: Words keep inner hyphens and apostrophes, "'s" is a token of its own, as is every other sign.
TOKEN = re.compile(
    r"['\u2019]s\b|[\w\u0300-\u036f]+(?:(?:['\u2019](?!s\b)|[-\u2010\u2011])[\w\u0300-\u036f]+)*|\S"
)
SAME = str.maketrans({"\u2019": "'", "\u2010": "-", "\u2011": "-"})

#: Words that may stand before a name in a list.
MOST_MODIFIERS = 8

ARTICLES = {"a", "an", "the"}
RELATIVES = {"who", "which", "that"}
BE = set("is are was were be been being gets".split())
AUXILIARIES = BE | set("has have had also still then not will to can".split())
ABBREVIATIONS = set(
    "Mr Mrs Ms Dr Sen Gov Gen Rep Lt Col Sgt Capt St Jr Sr Prof Rev vs No Jan Feb Mar Apr Aug Sep Sept Oct "
    "Nov Dec".split()
)
TITLES = set(
    "President Vice Premier Prime Minister Chancellor Secretary Senator Governor Representative Congressman "
    "Congresswoman Mayor Judge Justice King Queen Prince Princess Lady Sir Lord Pope Cardinal Bishop Captain "
    "General Colonel Coach Chairman Doctor Professor Ambassador Commissioner Deputy Former First Actor "
    "Actress Singer Director Mr Mrs Ms Dr Sen Gov Gen Rep Lt Col Sgt Capt Prof".split()
)
SUFFIXES = set("Jr Sr II III IV .".split())

#: Tag of each small word; other words are "m", capitalised ones "M", other signs "x".
TAGS = {
    "a": " ".join(AUXILIARIES),
    "d": "a an the his her their its our my your this that these those",  # determiners
    "s": "'s",
    "'": "' .",  # beside 's what may stand in a name with its titles
    "h": "he she they",
    "r": "who which",
    "c": "as while when after before because since until where whereas although though but if",
    "&": "and &",
    ",": ",",
    "(": "(",
    "o": "of",
    "f": "from",
    "i": "in at on near",
    "p": "with against to by for over beside next alongside between past like about toward towards into onto "
    "without including behind under above across around during following through throughout upon off outside "
    "inside than via among amid along",
}
TAGS = {word: tag for tag, words in TAGS.items() for word in words.split()}
#: Of prepositions, and of what no phrase of one verb or noun holds.
PREPOSITION, APART = "ofip", "ofipc&"
#: Words that may open a sentence before a surname and are no first names.
OPENERS = {word for word, tag in TAGS.items() if tag in APART + "ds"}
OPENERS |= set("then now here there later today yesterday both only even".split())


def tokens(text):
    """Words and signs of a text, where each starts and where it ends."""
    spans = [found.span() for found in TOKEN.finditer(text)]
    words = [text[start:end] for start, end in spans]
    if not text.isascii():
        words = [unicodedata.normalize("NFC", word.translate(SAME)) for word in words]
    return words, [start for start, _ in spans], [end for _, end in spans]


@lru_cache(100_000)
def tag_of(word):
    plain = "m" if word.islower() else "M"
    return TAGS.get(word.lower(), plain if WORD.match(word) else "x")


def tags(words, low):
    """A tag for each token, also given in lower case: that of `TAGS`, "&" for all of "as well as"."""
    found = list(map(tag_of, words))
    for i in range(len(low) - 2) if "well" in low else ():
        if low[i : i + 3] == ["as", "well", "as"]:
            found[i : i + 3] = "&&&"
    return found


# ------------------------------------------------------------------ forms


def gerund_stems(verb):
    """What -ing is added to; two spellings where a verb of several syllables may double a consonant."""
    if verb.endswith("ie"):
        return [verb[:-2] + "y"]
    if verb.endswith("e"):
        return [verb if re.search(r"[eoy]e$", verb) else verb[:-1]]
    plain = verb.replace("qu", "qw")
    short = r"[^aeiouy][aeiou][bdfgklmnprstvz]$|^[aeiou][bdgmnpt]$"
    if not re.search(short, plain):
        return [verb]
    doubled = verb + verb[-1]
    return [doubled] if len(re.findall(r"[aeiouy]+", plain.lstrip("y"))) == 1 else [doubled, verb]


def inflections(verb):
    """Regular inflections of a verb's base form, as pairs of form and kind ("s", "ing", "past")."""
    stems = gerund_stems(verb)
    if re.search(r"[^aeiou]y$", verb):
        third, past = verb[:-1] + "ies", [verb[:-1] + "ied"]
    else:
        third = verb + ("es" if re.search(r"(?:[sxz]|ch|sh|[^aeiou]o)$", verb) else "s")
        past = [verb + "d"] if verb.endswith("e") else [stem + "ed" for stem in stems]
    return [(third, "s"), *((stem + "ing", "ing") for stem in stems), *((form, "past") for form in past)]


def kind_of(form):
    """What a form that the vocabulary gives looks like; an irregular one counts as a past form."""
    if form.endswith("ing"):
        return "ing"
    return "s" if form.endswith("s") and not form.endswith("ss") else "past"
