r"""What a caption says: known names and verbs, which verb belongs to which name, and where a name's region lies (thesis section 5.3).

How the text is read
--------------------
Names
    Longest match of the known surface forms, case-sensitive, on whole words: "Obama's" names Obama, "Obama-style" does not. A name
    that occurs twice is one word. After a full name its bare surname is the same person, unless two names of the caption share it or a
    capitalised word that is no title stands right before it ("Buddy Hackett").
Verbs
    Forms with inflections (see `Vocabulary`), in lower case but for the first word of a sentence. Between the words of a verb of
    several words ("hit a backhand") up to three others may stand, and articles count for nothing: "hits a two-handed backhand". A form
    is no verb here if an article or a possessive leads it, at most two words before ("the waves", "a big smile", "his wife waving").
Subjects (C2)
    Sentences end at ``. ! ? ; :``; clauses begin at words such as "as", "while", "after". The subject of a verb is sought in its clause,
    among the names before it, possessives left out:

    - the nearest group ("A", "A and B", "A (L), B's coach C and D") that no preposition and no verb leads, so neither the B of "in a match
      with B" nor the B of "A hugs B and waves";
    - the nearest group of all where the verb follows it at once and is a participle ("with his wife B standing", "with B seated") or an
      infinitive ("A watches B wave"), or where "who" stands between;
    - the last name alone of "A poses, and B waves" and of "A hugs B and C waves": such a group has no singular verb;
    - otherwise the subject of an earlier verb in the clause ("A hugs B and waves");
    - "he", "she" or "they" before the verb, or a participle that opens a clause ("after hitting"): the subject of the clause before, of
      which "he" and "she" want one person;
    - a participle that opens a sentence ("Waving to fans, A arrives"): the first name after the next comma; "is hugged by B": B.

    A verb whose subject is none of the known names is not used. A name that is the subject of several verbs has the first.
Spatial indicators (D, C4)
    "(L)", "(R)", "(C)", "(left)", "(top)", "(2nd L)", "(second from left)" and the like after a name; ", left," between commas or before a
    full stop; "at left", "on the right", "in the middle" after a name where the phrase ends there (never "on the left wing"); "Left: A",
    "At right, A", "on the left is A" before one; "(L-R)", "(L to R)", "from left:", "from left to right," with a list of persons, known or
    not. "of Australia", "(AUS)" or an age may stand between a name and its indicator. Other uses of "left" and "right" say nothing.

References
----------
L. Jie (2011). Learning from multiple cues (thesis), section 5.3. L. Jie, B. Caputo and V. Ferrari (2009). Who's doing what. NIPS 22.
"""

import itertools
import re
import unicodedata
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

__all__ = ["Mention", "Vocabulary", "mentions"]

#: What the label 0 of every attribute is called.
NULL = "null"

# Words that may stand between those of a verb of several words, and modifiers before a name in a list.
_MOST_BETWEEN, _MOST_MODIFIERS = 3, 8

_WORD = re.compile(r"[\w\u0300-\u036f]")
_TOKEN = re.compile(
    r"['\u2019]s\b|[\w\u0300-\u036f]+(?:(?:['\u2019](?!s\b)|[-\u2010\u2011])[\w\u0300-\u036f]+)*|\S"
)
_SAME = str.maketrans({"\u2019": "'", "\u2010": "-", "\u2011": "-"})

_ARTICLES = frozenset("a an the".split())
_DETERMINERS = _ARTICLES | frozenset("his her their its our my your this that these those 's".split())
_CONJUNCTIONS = frozenset(
    "as while when after before because since until where whereas although though but if".split()
)
_PLACE_PREPOSITIONS = frozenset("of in at on from near".split())
_PREPOSITIONS = _PLACE_PREPOSITIONS | frozenset(
    "with against to by for over beside next alongside between past like about toward towards into onto without including behind under "
    "above across around during following through throughout upon off outside inside than via among amid along".split()
)
_PRONOUNS = frozenset("he she they".split())
_RELATIVES = frozenset("who which that".split())
_BE = frozenset("is are was were be been being gets".split())
_AUXILIARIES = _BE | frozenset("has have had also still then not will to can".split())
_AND = frozenset(["and", "&"])
_APART = _PREPOSITIONS | _CONJUNCTIONS | _AND  # what no phrase of one verb or noun holds
# Words that may open a sentence before a surname and are no first names.
_OPENERS = (
    _APART | _DETERMINERS | frozenset("then now here there later today yesterday both only even".split())
)
_ABBREVIATIONS = frozenset(
    "Mr Mrs Ms Dr Sen Gov Gen Rep Lt Col Sgt Capt St Jr Sr Prof Rev vs No Jan Feb Mar Apr Aug Sep Sept Oct Nov Dec".split()
)
_TITLES = frozenset(
    "President Vice Premier Prime Minister Chancellor Secretary Senator Governor Representative Congressman Congresswoman Mayor Judge "
    "Justice King Queen Prince Princess Lady Sir Lord Pope Cardinal Bishop Captain General Colonel Coach Chairman Doctor Professor "
    "Ambassador Commissioner Deputy Former First Actor Actress Singer Director Mr Mrs Ms Dr Sen Gov Gen Rep Lt Col Sgt Capt Prof".split()
)
_SUFFIXES = frozenset(["Jr", "Sr", "II", "III", "IV", "."])


class Mention(NamedTuple):
    """A known name or verb where it stands in a caption.

    Attributes
    ----------
    kind : {"name", "verb"}
    label : str
        "null" for a word that the vocabulary counts as null.
    start, end : int
        It is ``caption[start:end]``.
    subjects : tuple of str
        Of a verb: the names that do it.
    place : str
        Of a name: what the text says about where its region lies among the others, such as "left" or "2nd from right"; "" if nothing.
    """

    kind: str
    label: str
    start: int
    end: int
    subjects: tuple = ()
    place: str = ""


# --------------------------------------------------------------------------- tokens and vocabulary


def _tokens(text):
    """Words and punctuation of a text with their places: words keep inner hyphens and apostrophes, "'s" is a token of its own."""
    spans = [found.span() for found in _TOKEN.finditer(text)]
    words = [text[start:end] for start, end in spans]
    if not text.isascii():
        words = [unicodedata.normalize("NFC", word.translate(_SAME)) for word in words]
    return words, [start for start, _ in spans], [end for _, end in spans]


def _doubled(verb):
    """Whether the last consonant of a verb doubles before -ing and -ed: True, False, or None where both spellings are met."""
    plain = verb.replace("qu", "qw")
    if not re.search(r"[^aeiouy][aeiou][bdfgklmnprstvz]$", plain) and not re.fullmatch(
        r"[aeiou][bdgmnpt]", plain
    ):
        return False
    return True if len(re.findall(r"[aeiouy]+", plain.lstrip("y"))) == 1 else None


def _inflected(verb):
    """Regular inflections of a verb's base form, as pairs of form and kind."""
    forms = [(verb, "base")]
    if re.search(r"(?:[sxz]|ch|sh|[^aeiou]o)$", verb):
        forms.append((verb + "es", "s"))
    elif re.search(r"[^aeiou]y$", verb):
        forms.append((verb[:-1] + "ies", "s"))
    else:
        forms.append((verb + "s", "s"))
    if verb.endswith("ie"):
        stems, ed = [verb[:-2] + "y"], [verb + "d"]
    elif verb.endswith("e"):
        stems, ed = [verb if re.search(r"[eoy]e$", verb) else verb[:-1]], [verb + "d"]
    elif re.search(r"[^aeiou]y$", verb):
        stems, ed = [verb], [verb[:-1] + "ied"]
    else:
        doubled = _doubled(verb)
        stems = [verb + verb[-1]] * (doubled is not False) + [verb] * (doubled is not True)
        ed = [stem + "ed" for stem in stems]
    return forms + [(stem + "ing", "ing") for stem in stems] + [(form, "past") for form in ed]


def _kind_of(form):
    """What a form that the vocabulary gives looks like; an irregular one counts as a past form."""
    if form.endswith("ing"):
        return "ing"
    return "s" if form.endswith("s") and not form.endswith("ss") else "past"


def _given_words(name, words):
    """Labels with their surface forms, from a list or a dict."""
    if isinstance(words, (str, bytes)) or not hasattr(words, "__iter__"):
        raise TypeError(
            f"{name} must be a list of words or a dict from a word to its surface forms, got {words!r}"
        )
    given = list(words.items()) if isinstance(words, Mapping) else [(word, ()) for word in words]
    labels = {}
    for label, forms in given:
        if isinstance(forms, (str, bytes)) or not hasattr(forms, "__iter__"):
            raise TypeError(f"{name}[{label!r}] must be a list of surface forms, got {forms!r}")
        forms = [label, *forms]
        for form in forms:
            if not isinstance(form, str):
                raise TypeError(f"{name} must hold words as str, got {form!r}")
            if not _WORD.search(form):
                raise ValueError(f"{name} must hold words with at least one letter, got {form!r}")
        if str(label) == NULL:
            raise ValueError(f"{name} must not hold {NULL!r}, which stands for none of the words")
        if label in labels:
            raise ValueError(f"{name} must hold every word once, got {label!r} twice")
        labels[str(label)] = forms
    return labels


class Vocabulary:
    r"""The words that labels can be made of.

    Parameters
    ----------
    names : list of str, or dict of str to list of str
        Labels, or labels with further surface forms: ``{"Barack Obama": ["President of the USA"]}``. A label is a form of itself.
    verbs : list of str, or dict of str to list of str, default ()
        Base forms such as "wave" or "hit a backhand", or labels with further forms (irregular ones, synonyms):
        ``{"shake hands": ["shook hands"], "backhand": ["hit a backhand"]}``. The regular inflections of the first word of a label or form
        are added: waves, waving, waved; hits, hitting; carries, carried.

    Attributes
    ----------
    names, verbs : ndarray of str
        The labels, "null" first: label k of the attribute is called ``names[k]`` (``verbs[k]``).

    Raises
    ------
    TypeError, ValueError
        If a word is no text, "null", given twice, or a surface form given for two labels. (An inflection that two labels share goes to
        the one it is derived from, before one that has it from a further form, then to the first.)

    Examples
    --------
    >>> words = Vocabulary(["Roger Federer", "Andy Roddick"], {"backhand": ["hit a backhand"]})
    >>> words.names.tolist(), words.verbs.tolist()
    (['null', 'Roger Federer', 'Andy Roddick'], ['null', 'backhand'])
    >>> words.only(names=["Andy Roddick"]).names.tolist()
    ['null', 'Andy Roddick']
    """

    def __init__(self, names, verbs=()):
        people, actions = _given_words("names", names), _given_words("verbs", verbs)
        if not people:
            raise ValueError("names must hold at least one name, got none")
        self._people, self._actions = list(people), list(actions)
        self._name_forms = self._index_names(people)
        self._verb_forms = self._index_verbs(actions)
        self._surnames = [self._surname(name) for name in self._people]
        self._keep(self._people, self._actions)

    @staticmethod
    def _index_names(people):
        """First word of a surface form -> [(its words, person)], longest first."""
        owner = {}
        for person, (label, forms) in enumerate(people.items()):
            for form in forms:
                words = tuple(_tokens(form)[0])
                if owner.setdefault(words, person) != person:
                    other = list(people)[owner[words]]
                    raise ValueError(
                        f"names must give a surface form to one label, got {form!r} for {other!r} and {label!r}"
                    )
        return _by_first_word(owner.items())

    @staticmethod
    def _index_verbs(actions):
        """First word of a form -> [(its words, (verb, kind))], longest first."""
        owner = {}  # form -> (rank, verb, kind): given forms before those of the label before those of a further form
        for verb, (label, forms) in enumerate(actions.items()):
            for number, form in enumerate(forms):
                words = [word.lower() for word in _tokens(form)[0]]
                words = (words[0], *(word for word in words[1:] if word not in _ARTICLES))
                known = owner.get(words)
                if known is not None and known[0] == 0 and known[1] != verb:
                    other = list(actions)[known[1]]
                    raise ValueError(
                        f"verbs must give a surface form to one label, got {form!r} for {other!r} and {label!r}"
                    )
                if known is None or known[0] > 0:
                    owner[words] = (0, verb, "base" if number == 0 else _kind_of(words[0]))
                for first, kind in _inflected(words[0])[1:]:
                    known = owner.get((first, *words[1:]))
                    if known is None or known[0] > 1 + (number > 0):
                        owner[(first, *words[1:])] = (1 + (number > 0), verb, kind)
        return _by_first_word((words, (verb, kind)) for words, (_, verb, kind) in owner.items())

    @staticmethod
    def _surname(name):
        words = [word for word in _tokens(name)[0] if word not in _SUFFIXES]
        return words[-1] if len(words) > 1 else None

    def _keep(self, names, verbs):
        self.names, self.verbs = np.array([NULL, *names]), np.array([NULL, *verbs])
        of_name = {name: k + 1 for k, name in enumerate(names)}
        of_verb = {verb: k + 1 for k, verb in enumerate(verbs)}
        self._name_label = [of_name.get(name, 0) for name in self._people]
        self._verb_label = [of_verb.get(verb, 0) for verb in self._actions]

    def only(self, names=None, verbs=None):
        """The same words, of which some count as null.

        Parameters
        ----------
        names, verbs : iterable of str, optional
            The labels to keep, all by default; their order stays. The others are still read, so that "(L)" after a name that counts as
            null says that the region at the left is null, and its verb goes to no other name.

        Returns
        -------
        Vocabulary

        Raises
        ------
        TypeError, ValueError
            On a word that is not in the vocabulary, or if no name is left.
        """
        kept = []
        for name, chosen, known in (
            ("names", names, self.names[1:].tolist()),
            ("verbs", verbs, self.verbs[1:].tolist()),
        ):
            if chosen is None:
                kept.append(known)
                continue
            if isinstance(chosen, (str, bytes)) or not hasattr(chosen, "__iter__"):
                raise TypeError(f"{name} must be a list of labels, got {chosen!r}")
            chosen = set(chosen) - {NULL}
            if not chosen <= set(known):
                raise ValueError(
                    f"{name} must be labels of the vocabulary, got {sorted(map(str, chosen - set(known)))[0]!r}"
                )
            kept.append([label for label in known if label in chosen])
        if not kept[0]:
            raise ValueError("names must keep at least one name, got none")
        made = object.__new__(Vocabulary)
        made.__dict__.update(self.__dict__)
        made._keep(*kept)
        return made

    def labels_of(self, attribute):
        """Labels of the attribute "name" or "verb", "null" first."""
        return self.names if attribute == "name" else self.verbs

    def __repr__(self):
        return f"<Vocabulary: {len(self.names) - 1} names, {len(self.verbs) - 1} verbs>"


def _by_first_word(forms):
    index = {}
    for words, what in forms:
        index.setdefault(words[0], []).append((words, what))
    for entries in index.values():
        entries.sort(key=lambda entry: -len(entry[0]))  # stable: ties in the vocabulary's order
    return index


# --------------------------------------------------------------------------- reading a caption


class _Name(NamedTuple):
    person: int
    first: int  # tokens
    last: int  # one past
    possessive: bool


class _Verb(NamedTuple):
    verb: int
    first: int
    last: int
    kind: str  # base, s, ing, past
    subjects: tuple  # of persons


class Text:
    """A caption read with a vocabulary: names, verbs with their subjects (unless not asked for), places of persons."""

    def __init__(self, caption, vocabulary, subjects=True):
        self.caption, self.vocabulary = caption, vocabulary
        self.words, self.starts, self.ends = _tokens(caption)
        self.names = self._find_names()
        self.holder = [None] * len(self.words)  # what a token is part of
        for name in self.names:
            self.holder[name.first : name.last] = [name] * (name.last - name.first)
        self.low = [word.lower() for word in self.words]
        self._find_clauses()
        self.verbs = self._find_verbs()
        for verb in self.verbs:
            self.holder[verb.first : verb.last] = [verb] * (verb.last - verb.first)
        self.places = {}  # person -> list of places
        self.blank = set()  # tokens of indicators
        if _ANY_PLACE.search(caption):
            _find_places(self)
        if subjects and self.verbs:
            self._find_subjects()

    # ------------------------------------------------------------------ names

    def _find_names(self):
        words, forms = self.words, self.vocabulary._name_forms
        found, end = [], 0
        for i in [i for i, word in enumerate(words) if word in forms]:
            if i < end:
                continue
            for form, person in forms[words[i]]:
                if len(form) == 1 or tuple(words[i : i + len(form)]) == form:
                    end = i + len(form)
                    found.append((person, i, end))
                    break
        found = self._with_surnames(found) if found else found
        return [_Name(person, first, last, self._possessive(last)) for person, first, last in found]

    def _with_surnames(self, found):
        """The mentions and the later ones by bare surname."""
        surnames, words = self.vocabulary._surnames, self.words
        owners = {}
        for person, _, last in found:
            if surnames[person] is not None:
                owners.setdefault(surnames[person], {}).setdefault(person, last)
        taken = {i for _, first, last in found for i in range(first, last)}
        for i in [i for i, word in enumerate(words) if word in owners]:
            persons = owners[words[i]]
            if len(persons) > 1 or i in taken:
                continue
            (person, seen), *_ = persons.items()
            before = words[i - 1] if i else ""
            # A capitalised word before makes it another person's name, but for a title or a word that opens a sentence.
            other = before[:1].isupper() and before not in _TITLES and before.lower() not in _OPENERS
            if i >= seen and not other:
                found = [*found, (person, i, i + 1)]
        return sorted(found, key=lambda mention: mention[1])

    def _possessive(self, last):
        if last >= len(self.words):
            return False
        after = self.words[last]
        return (
            self.starts[last] == self.ends[last - 1]
            and after in ("'s", "'")
            and (after == "'s" or self.words[last - 1][-1] == "s")
        )

    # ------------------------------------------------------------------ sentences, clauses, verbs

    def _find_clauses(self):
        """Number of the clause and of the sentence of every token; a conjunction belongs to the clause it opens."""
        words, low, holder, n = self.words, self.low, self.holder, len(self.words)
        self.clause, self.sentence, self.clause_start = [0] * n, [0] * n, [0]
        clause = sentence = 0
        fresh = False
        for i in range(n):
            opens = low[i] in _CONJUNCTIONS and holder[i] is None and not self._as_well_as(i)
            if i and (fresh or opens):
                clause += 1
                sentence += fresh
                self.clause_start.append(i)
            self.clause[i], self.sentence[i] = clause, sentence
            fresh = words[i] in ".!?;:" and holder[i] is None and self._ends_sentence(i)

    def _as_well_as(self, i):
        """Whether a token is the first or the last of "as well as"."""
        phrase = ["as", "well", "as"]
        return self.low[i] == "as" and phrase in (self.low[i : i + 3], self.low[max(i - 2, 0) : i + 1])

    def _ends_sentence(self, i):
        if self.words[i] in "!?;":
            return True
        if i + 1 == len(self.words):
            return True
        if self.starts[i + 1] == self.ends[i]:
            return False  # 43.14, 19:30, and all dots of an ellipsis but the last
        if self.words[i] == ":":
            return True
        before = self.words[i - 1] if i and self.ends[i - 1] == self.starts[i] else ""
        initial = len(before) == 1 and before.isupper()
        after = self.words[i + 1][0]
        return not initial and before not in _ABBREVIATIONS and (after.isupper() or not after.isalnum())

    def _opens_sentence(self, i):
        return i == 0 or self.sentence[i] != self.sentence[i - 1]

    def _find_verbs(self):
        forms, found, end = self.vocabulary._verb_forms, [], 0
        for i in [i for i, word in enumerate(self.low) if word in forms]:
            if (
                i < end
                or self.holder[i] is not None
                or not (self.words[i].islower() or self._opens_sentence(i))
            ):
                continue
            for form, (verb, kind) in forms[self.low[i]]:
                last = self._verb_end(i, form)
                if last:
                    if not self._is_noun(i, kind, len(form) == 1):
                        found.append(_Verb(verb, i, last, kind, ()))
                        end = last
                    break
        return found

    def _verb_end(self, first, form):
        at = first + 1
        for word in form[1:]:
            for _ in range(_MOST_BETWEEN + 1):
                if at >= len(self.low):
                    return None
                if self.low[at] == word:
                    break
                if self.holder[at] is not None or not self.words[at].islower() or self.low[at] in _APART:
                    return None
                at += 1
            else:
                return None
            at += 1
        return at

    def _is_noun(self, i, kind, alone):
        """Whether the word belongs to what an article or a possessive leads: it stands right before it, or up to two words before."""
        for at in range(i - 1, max(i - 4, -1), -1):
            if self.holder[at] is not None:
                return False
            word = self.low[at]
            if word in _DETERMINERS:
                leads = self.low[at - 1] if at else ""
                if at == i - 1 or leads not in _PREPOSITIONS:
                    return True
                # "in a match hits" goes with a subject further back, "with a big smile" and "with a crowd waving" do not.
                return (kind == "base" and alone) or (kind == "ing" and leads == "with")
            if not self.words[at].islower() or word in _APART or word in _AUXILIARIES:
                return False
        return False

    # ------------------------------------------------------------------ subjects

    def _find_subjects(self):
        self.actors = [name for name in self.names if not name.possessive]
        self.links = [None] + [self._link(a, b) for a, b in itertools.pairwise(self.actors)]
        done = []
        for verb in self.verbs:
            verb = verb._replace(
                subjects=tuple(dict.fromkeys(name.person for name in self._subjects(verb, done)))
            )
            done.append(verb)
        self.verbs = done

    def _link(self, a, b):
        """How two names are joined to one group: "," or "and" or ", and", None if they are not."""
        gap = [i for i in range(a.last, b.first) if i not in self.blank]
        low = self.low
        if self.clause[a.first] != self.clause[b.first]:
            return None
        if any(isinstance(self.holder[i], _Verb) for i in gap):
            return None
        joins = [
            k
            for k, i in enumerate(gap)
            if low[i] == "," or low[i] in _AND or (low[i] == "as" and self._as_well_as(i))
        ]
        if not joins:
            return None
        modifiers = gap[joins[-1] + 1 :]
        if len(modifiers) > _MOST_MODIFIERS or not all(self._modifies(i) for i in modifiers):
            return None
        run, k = "", joins[-1]
        while k >= 0 and (k in joins or low[gap[k]] in ("as", "well")):
            run, k = ("," if low[gap[k]] == "," else "&") + run, k - 1
        if k >= 0 and low[gap[0]] not in ("(", ",", "of", "from", "&", "and"):
            return None
        return ", and" if run.startswith(",") and "&" in run else ("and" if "&" in run else ",")

    def _modifies(self, i):
        """Whether a token may stand before a name within its group: titles, adjectives, "Ukraine's silver medalist"."""
        if self.words[i] in ("'s", "'", "."):
            return True
        return (
            _WORD.match(self.words[i]) is not None
            and self.low[i] not in _PREPOSITIONS - {"of"}
            and self.low[i] not in _AUXILIARIES
        )

    def _group_before(self, j, singular=False):
        """The names joined to number j and those before it; commas alone join only in front of an "and"."""
        first = j
        link = self.links[j]
        if link == "and" or (link == ", and" and not singular):
            first = j - 1
            while (
                self.links[first] is not None
                and self.clause[self.actors[first].first] == self.clause[self.actors[j].first]
            ):
                first -= 1
        return self.actors[first : j + 1]

    def _group_after(self, j):
        last = j
        while last + 1 < len(self.actors) and self.links[last + 1] is not None:
            last += 1
        while last > j and self.links[last] == ",":
            last -= 1
        return self.actors[j : last + 1]

    def _led_by(self, group):
        """What leads a group: "preposition", "verb", "relative" ("who beat B") or None."""
        at, capitals = group[0].first - 1, False
        for _ in range(_MOST_MODIFIERS):
            while at in self.blank:
                at -= 1
            if at < 0 or self.clause[at] != self.clause[group[0].first]:
                return None
            word, holder = self.low[at], self.holder[at]
            if isinstance(holder, _Verb):
                return "verb"
            if isinstance(holder, _Name) and not holder.possessive:
                return None
            if word in _PREPOSITIONS:
                if word not in _PLACE_PREPOSITIONS or not capitals:
                    return None if self._opens_sentence(at) and word in _PLACE_PREPOSITIONS else "preposition"
                capitals = False  # "of the United States", "in Prague": its object stands before the name
            elif word not in ("'s", "'", ".") and not _WORD.match(word):
                return None
            elif word in ("who", "which"):
                return "relative"
            elif word in _AND or word in _CONJUNCTIONS or word in _AUXILIARIES:
                return None
            elif (
                self.words[at][0].isupper()
                and self.words[at] not in _TITLES
                and self.low[at + 1] not in ("'s", "'")
            ):
                capitals = True
            at -= 1
        return None

    def _follows(self, verb, group):
        """Whether a verb stands right after a group, adverbs, auxiliaries, indicators and parentheses aside."""
        depth = 0
        for i in range(group[-1].last, verb.first):
            depth += (self.words[i] == "(") - (self.words[i] == ")")
            aside = self.words[i] == ")" or i in self.blank or (self.words[i] == "," and i - 1 in self.blank)
            if depth or aside or self.low[i].endswith("ly") or self.low[i] in _AUXILIARIES:
                continue
            return False
        return True

    def _word_before(self, i):
        """The last token before i that is no adverb, auxiliary or indicator, within the clause; -1 if there is none."""
        clause = self.clause[i]
        i -= 1
        while i >= 0 and self.clause[i] == clause:
            if i not in self.blank and not self.low[i].endswith("ly") and self.low[i] not in _AUXILIARIES:
                return i
            i -= 1
        return -1

    def _subjects(self, verb, done):
        low, clause = self.low, self.clause[verb.first]
        passive = (
            verb.last < len(low) and low[verb.last] == "by" and verb.first and low[verb.first - 1] in _BE
        )
        if passive:
            after = [
                j
                for j, name in enumerate(self.actors)
                if name.first > verb.last and self.clause[name.first] == clause
            ]
            return self._group_after(after[0]) if after else []
        before = [
            j
            for j, name in enumerate(self.actors)
            if name.last <= verb.first and self.clause[name.first] == clause
        ]
        lead = self._word_before(verb.first)
        if before:
            nearest = self._group_before(before[-1], singular=verb.kind == "s")
            if lead >= nearest[-1].last and low[lead] in _RELATIVES:
                return nearest
            if self._follows(verb, nearest):
                led = self._led_by(nearest)
                if verb.kind == "s" and led and len(nearest) > 1:
                    return nearest[-1:]
                if (
                    verb.kind == "ing"
                    or (led and verb.kind == "past")
                    or (led == "verb" and verb.kind == "base")
                ):
                    return nearest
            group = nearest
            while True:
                if not self._led_by(group):
                    return group
                earlier = [j for j in before if self.actors[j].first < group[0].first]
                if not earlier:
                    break
                group = self._group_before(earlier[-1])
        same = [other for other in done if self.clause[other.first] == clause and other.subjects]
        if same:
            return self._names_of(same[-1].subjects)
        start = self.clause_start[clause]
        if verb.kind == "ing" and self._opens_sentence(verb.first):
            return self._after_comma(verb)
        pronoun = low[lead] if lead >= 0 and low[lead] in _PRONOUNS else None
        if pronoun or (verb.kind == "ing" and verb.first == start + 1 and low[start] in _CONJUNCTIONS):
            group = self._earlier_subject(clause, done)
            return group if pronoun in (None, "they") or len({name.person for name in group}) == 1 else []
        return []

    def _names_of(self, persons):
        return [name for name in self.actors if name.person in persons]

    def _after_comma(self, verb):
        commas = (
            i
            for i in range(verb.last, len(self.low))
            if self.low[i] == "," and self.sentence[i] == self.sentence[verb.first]
        )
        comma = next(commas, None)
        if comma is None:
            return []
        after = [
            j
            for j, name in enumerate(self.actors)
            if name.first > comma and self.sentence[name.first] == self.sentence[comma]
        ]
        return self._group_after(after[0]) if after else []

    def _earlier_subject(self, clause, done):
        """Subject of the nearest clause before that has one: that of its last verb, else its first group."""
        for earlier in range(clause - 1, -1, -1):
            verbs = [verb for verb in done if self.clause[verb.first] == earlier and verb.subjects]
            if verbs:
                return self._names_of(verbs[-1].subjects)
            inside = [j for j, name in enumerate(self.actors) if self.clause[name.first] == earlier]
            if inside:
                return self._group_after(inside[0])
        return []


# --------------------------------------------------------------------------- places


class _Place(NamedTuple):
    """Where a region lies among the others: number `rank` along an axis, negative from the far end, None in the middle."""

    axis: int
    rank: int | None
    of: int | None = None  # length of the list that says so

    def __str__(self):
        if self.rank is None:
            return "middle"
        ends = (("left", "right"), ("top", "bottom"))[self.axis]
        rank = self.rank if self.of is None or self.rank != self.of - 1 else -1
        place = ends[rank < 0]
        number = rank + 1 if rank >= 0 else -rank
        return place if number == 1 else f"{number}{ {2: 'nd', 3: 'rd'}.get(number, 'th') } from {place}"


_RANKS = {
    "2nd": 1,
    "second": 1,
    "3rd": 2,
    "third": 2,
    "4th": 3,
    "fourth": 3,
    "5th": 4,
    "fifth": 4,
    "6th": 5,
    "sixth": 5,
}
_ENDS = {"left": (0, 0), "l": (0, 0), "right": (0, -1), "r": (0, -1), "top": (1, 0), "bottom": (1, -1)}

_SIDE = r"(?i:left|right|cent(?:er|re)|middle|top|bottom)"
_RANK = rf"(?P<rank>(?i:{'|'.join(_RANKS)}))\s*(?:(?i:from\s+(?:the\s+)?))?"
_FAR = r"(?i:(?:far|extreme)\s+)?"
_PLACE = rf"(?:{_RANK}(?P<end>(?i:left|right))|{_FAR}(?P<side>{_SIDE}))"
_PLACE_OR_LETTER = (
    rf"(?:{_RANK}(?P<end>(?i:left|right)|[LRlr])|{_FAR}(?P<side>{_SIDE}|[LRClr]))"  # "(c)" is a copyright
)
_AT = r"(?:at|on|in|to)\s+(?:the\s+)?"
_LINE = (
    r"(?i:from\s+)?(?:(?P<rightward>L-R|(?i:left[\s-]+to[\s-]+right)|L[\s-]+to[\s-]+R)"
    r"|(?P<leftward>R-L|(?i:right[\s-]+to[\s-]+left)|R[\s-]+to[\s-]+L))"
)
_FROM = r"(?i:from\s+(?:the\s+)?)(?P<from>(?i:left|right)|[LR])"

_ANY_PLACE = re.compile(
    r"\b(?:left|right|cent(?:er|re)|middle|top|bottom|[lrc]|\d[lr]|l-r|r-l)\b", re.IGNORECASE
)
_PAREN_LINE = re.compile(rf"\(\s*(?:{_LINE}|{_FROM})\s*\)")
_PAREN = re.compile(rf"\(\s*(?:{_AT})?{_PLACE_OR_LETTER}\s*(?:,[^()]*)?\)")
_COMMA = re.compile(rf",\s*(?:{_AT})?{_PLACE}\s*(?=[,.;:)]|$|and\s+(?!(?:left|right)\b))")
_AT_PLACE = re.compile(
    rf"\s{_AT}{_PLACE}(?=(?P<ends>\s*(?:[,.;:)]|$|(?:and|with|while|as|who|but|or)\b))|\s)"
)
_BEFORE = re.compile(
    rf"(?:(?:^|(?<=[.!?,;:(])|(?<=\band))\s*)"
    rf"(?:{_PLACE}(?:\s*[,:]|\s+is\b)|(?P<at>(?i:{_AT})){_PLACE.replace('P<', 'P<at_')}(?:\s*[,:]|\s+is\b|(?=\s+[A-Z])))"
)
_LINE_BEFORE = re.compile(rf"(?<!\w)(?:{_LINE}\s*(?=[,.:;]|are\b|is\b|$)|{_FROM}\s*(?=[,.:;]|are\b|is\b|$))")
# What may stand between a name and its indicator: a country, its code, an age; in at most so many characters.
_NEAREST = 60
_NEAR = re.compile(
    r"(?:\s*,?\s*(?:of|from)\s+(?:the\s+)?[A-Z][\w.'-]*(?:\s+[A-Z][\w.'-]*){0,3}|\s*\([A-Z]{2,3}\)|\s*,\s*\d{1,3})*\s*"
)
_SPLIT = re.compile(r",|;|\band\b|&")
_TWO_CAPITALS = re.compile(r"\b[A-Z][\w'.-]*\s+(?:(?:de|del|della|di|van|von|der|bin|al|el|la|le)\s+)*[A-Z]")


def _place_of(found, prefix=""):
    """The place that a match of `_PLACE` says."""
    rank = found.group(prefix + "rank")
    if rank is not None:
        k = _RANKS[rank.lower()]
        return _Place(0, k if found.group(prefix + "end").lower() in ("left", "l") else -1 - k)
    side = found.group(prefix + "side").lower()
    return _Place(*_ENDS[side]) if side in _ENDS else _Place(0, None)


def _find_places(text):
    """Fill `text.places` and `text.blank` from the caption's spatial indicators."""
    caption = text.caption
    taken = []

    def free(found):
        return all(found.end() <= start or found.start() >= end for start, end in taken)

    def take(found):
        taken.append(found.span())
        text.blank.update(i for i, start in enumerate(text.starts) if found.start() <= start < found.end())

    for pattern in (_PAREN_LINE, _LINE_BEFORE):
        for found in pattern.finditer(caption):
            if free(found) and _place_line(text, found):
                take(found)
    for found in _PAREN.finditer(caption):
        if free(found):
            name = _name_before(text, found.start()) or _name_after(text, found.end(), touching=True)
            if name is not None:
                text.places.setdefault(name.person, []).append(_place_of(found))
                take(found)
    verbs = {text.starts[verb.first] for verb in text.verbs}
    for found in _COMMA.finditer(caption):
        name = _name_before(text, found.start()) if free(found) else None
        if name is not None:
            text.places.setdefault(name.person, []).append(_place_of(found))
            take(found)
    for found in _AT_PLACE.finditer(caption):
        space = len(caption[found.end() :]) - len(caption[found.end() :].lstrip())
        if free(found) and (found.group("ends") is not None or found.end() + space in verbs):
            name = _name_before(text, found.start())
            if name is not None:
                text.places.setdefault(name.person, []).append(_place_of(found))
                take(found)
    for found in _BEFORE.finditer(caption):
        name = _name_after(text, found.end()) if free(found) else None
        if name is not None:
            text.places.setdefault(name.person, []).append(
                _place_of(found, "at_" if found.group("at") else "")
            )
            take(found)


def _name_before(text, at):
    """The name that ends where an indicator begins, or None."""
    for name in reversed(text.names):
        end = text.ends[name.last - 1]
        if end <= at:
            near = at - end <= _NEAREST and _NEAR.fullmatch(text.caption, end, at)
            return name if near else None
    return None


def _name_after(text, at, touching=False):
    """The name that an indicator before it leads to, modifiers between, or None."""
    for name in text.names:
        if text.starts[name.first] >= at and not name.possessive:
            between = [i for i in range(name.first) if text.starts[i] >= at]
            if len(between) > _MOST_MODIFIERS * (not touching):
                return None
            modifiers = all(
                text._modifies(i) and text.low[i] not in _AND and not isinstance(text.holder[i], _Verb)
                for i in between
            )
            return name if modifiers else None
    return None


def _place_line(text, found):
    """Places of a list of persons in a line; whether there is one."""
    caption = text.caption
    if re.search(
        r"(?:clockwise|\b(?:" + "|".join(_RANKS) + r"))\s*$", caption[: found.start()], re.IGNORECASE
    ):
        return False
    groups = found.groupdict()
    leftward = groups["leftward"] is not None or (groups["from"] or "").lower() in ("right", "r")
    after = [i for i, start in enumerate(text.starts) if start >= found.end()]
    before = [i for i, start in enumerate(text.starts) if start < found.start()]
    near = _name_before(
        text, found.start() - len(caption[: found.start()]) + len(caption[: found.start()].rstrip(" ,"))
    )
    persons = []
    if near is not None and near.person is not None:
        persons, closed = _line_before(text, before, found.start())
        if not closed:  # "A, from left, B and C"
            rest = _line_after(text, after, found.end())
            persons = [near.person, *rest] if rest else persons
    elif after:
        persons = _line_after(text, after, found.end())
    if len(persons) < 2:
        return False
    if leftward:
        persons = persons[::-1]
    for rank, person in enumerate(persons):
        if person is not None:
            text.places.setdefault(person, []).append(_Place(0, rank, len(persons)))
    return True


def _person_in(text, start, end):
    """The person of one item of a list: (known, None) or (unknown, True) or (none, False)."""
    for name in text.names:
        if start <= text.starts[name.first] < end and not name.possessive:
            return name.person, True
    item = text.caption[start:end].strip()
    first = item.split(" ", 1)[0].lower() if item else ""
    return None, first not in _PREPOSITIONS and _TWO_CAPITALS.search(item) is not None


def _outside_names(text, pattern, start, end):
    spans = [(text.starts[name.first], text.ends[name.last - 1]) for name in text.names]
    return [
        cut
        for cut in pattern.finditer(text.caption, start, end)
        if not any(a <= cut.start() < b for a, b in spans)
    ]


def _line_before(text, before, end):
    """Persons of the list that ends at a place of the text, and whether an "and" closes it."""
    sentence = text.sentence[before[-1]]
    start = text.starts[next(i for i in before if text.sentence[i] == sentence)]
    end = len(text.caption[:end].rstrip(" ,"))
    persons, closed, stop = [], False, end
    for cut in [*reversed(_outside_names(text, _SPLIT, start, end)), None]:
        begin = cut.end() if cut else start
        person, is_person = _person_in(text, begin, stop)
        if not is_person:
            empty = not text.caption[begin:stop].strip()  # ", and"
            if not empty:
                break
        else:
            persons.insert(0, person)
        if cut is None:
            break
        if cut.group() in ("and", "&"):
            if closed:
                break
            closed = True
        stop = cut.start()
    return persons, closed


def _line_after(text, after, start):
    """Persons of the list that begins at a place of the text: to the item after "and", or as long as items are persons."""
    caption = text.caption
    opened = re.compile(r"\s*(?:[,:;]|are\b|is\b)?\s*").match(caption, start)
    start = opened.end()
    after = [i for i in after if text.starts[i] >= start]
    if not after:
        return []
    sentence = text.sentence[after[0]]
    inside = [i for i in after if text.sentence[i] == sentence]
    end = text.ends[inside[-1]]
    cuts = _outside_names(text, _SPLIT, start, end)
    closes = next((k for k, cut in enumerate(cuts) if cut.group() in ("and", "&")), None)
    persons, at = [], start
    for k, cut in enumerate([*cuts, None]):
        person, is_person = _person_in(text, at, cut.start() if cut else end)
        if is_person:
            persons.append(person)
        elif closes is None:
            break
        if cut is None or (closes is not None and k == closes + 1):
            break
        at = cut.end()
    return persons


# --------------------------------------------------------------------------- for readers


def check_caption(caption, vocabulary):
    if not isinstance(caption, str):
        raise TypeError(f"caption must be a str, got {type(caption).__name__}")
    if not caption.strip():
        raise ValueError("caption must hold some text, got an empty one")
    if not isinstance(vocabulary, Vocabulary):
        raise TypeError(f"vocabulary must be a Vocabulary, got {type(vocabulary).__name__}")


def mentions(caption, vocabulary):
    """The known names and verbs of a caption, in the order of the text, as `candidates_from_caption` reads them.

    Parameters
    ----------
    caption : str
    vocabulary : Vocabulary

    Returns
    -------
    list of Mention

    Raises
    ------
    TypeError, ValueError
        If the caption is no text or an empty one.

    Examples
    --------
    >>> words = Vocabulary(["Barack Obama", "Michelle Obama"], ["wave", "stand"])
    >>> for mention in mentions("Barack Obama waves with his wife Michelle Obama (R) standing beside him.", words):
    ...     print(mention.kind, mention.label, *mention.subjects, *filter(None, [mention.place]))
    name Barack Obama
    verb wave Barack Obama
    name Michelle Obama right
    verb stand Michelle Obama
    """
    check_caption(caption, vocabulary)
    text = Text(caption, vocabulary)
    found = []

    def called(person):
        return str(vocabulary.names[vocabulary._name_label[person]])

    for name in text.names:
        place = " and ".join(dict.fromkeys(map(str, text.places.get(name.person, ()))))
        found.append(
            Mention("name", called(name.person), text.starts[name.first], text.ends[name.last - 1], (), place)
        )
    for verb in text.verbs:
        label = str(vocabulary.verbs[vocabulary._verb_label[verb.verb]])
        subjects = tuple(called(person) for person in verb.subjects)
        found.append(Mention("verb", label, text.starts[verb.first], text.ends[verb.last - 1], subjects))
    return sorted(found, key=lambda mention: mention.start)
