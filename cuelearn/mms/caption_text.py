"""What a caption says: known names and verbs, and which verb belongs to which name, by the rules that
`mentions` tells (thesis section 5.3; Jie, Caputo and Ferrari, Who's doing what, NIPS 22, 2009)."""

import itertools
import re
from typing import NamedTuple

from cuelearn.mms.caption_places import ANY_PLACE, find_places
from cuelearn.mms.english import (
    ABBREVIATIONS,
    APART,
    AUXILIARIES,
    BE,
    MOST_MODIFIERS,
    OPENERS,
    PREPOSITION,
    RELATIVES,
    TITLES,
    tags,
    tokens,
)
from cuelearn.mms.vocabulary import check_vocabulary

__all__ = ["Mention", "Text", "check_caption", "mentions"]

#: Words that may stand between those of a verb of several words.
MOST_BETWEEN = 3
#: Tags of tokens that may not stand before a name in its group, as "Ukraine's silver medalist" may.
NO_MODIFIER = "ifpax,("
#: Tags between two names of one group: what follows the first, commas and "and"s, modifiers of the second.
LINK = re.compile(rf"(?:[,&of(][^V]*?)??([,&]+)[^&V{NO_MODIFIER}]{{0,{MOST_MODIFIERS}}}")
#: Tags before a word that is a noun: what leads an article or a possessive, this, up to two words.
NOUN = re.compile(r"(.?)[ds]([mhr]{0,2})$")


class Mention(NamedTuple):
    """A known name or verb where it stands in a caption.

    Examples
    --------
    >>> from cuelearn.mms import Mention, Vocabulary, mentions
    >>> [found] = mentions("Ann Lee (L) waves.", Vocabulary(["Ann Lee"]))
    >>> found == Mention("name", "Ann Lee", 0, 7, (), "left")
    True
    """

    kind: str  # "name" or "verb"
    label: str  # "null" for a word that the vocabulary counts as null
    start: int  # it is caption[start:end]
    end: int
    subjects: tuple = ()  # of a verb: the names that do it
    place: str = ""  # of a name: where its region is said to lie, such as "left" or "2nd from right"


class Name(NamedTuple):
    person: int
    first: int  # tokens
    last: int  # one past
    possessive: bool


class Verb(NamedTuple):
    verb: int
    first: int
    last: int
    kind: str  # base, s, ing, past
    subjects: tuple = ()  # of persons


class Text:
    """A caption read with a vocabulary: `names`; `verbs` with their subjects, unless not asked for; `places`
    of persons; `blank`, the tokens of indicators."""

    def __init__(self, caption, vocabulary, subjects=True):
        self.caption, self.vocabulary = caption, vocabulary
        self.words, self.starts, self.ends = tokens(caption)
        self.low = list(map(str.lower, self.words))
        self.tags = tags(self.words, self.low)  # tokens of names become N, G if possessive, those of verbs V
        self.names = self._find_names()
        for name in self.names:
            self.tags[name.first : name.last] = ("G" if name.possessive else "N") * (name.last - name.first)
        self._find_clauses()
        self.verbs = self._find_verbs()
        for verb in self.verbs:
            self.tags[verb.first : verb.last] = "V" * (verb.last - verb.first)
        self.places, self.blank = {}, set()
        if ANY_PLACE.search(caption):
            find_places(self)
        if subjects and self.verbs:
            self._find_subjects()

    # ------------------------------------------------------------------ names

    def _find_names(self):
        words, forms = self.words, self.vocabulary.name_forms
        found, end = [], 0
        for i in [i for i, word in enumerate(words) if word in forms]:
            for form, person, _ in forms[words[i]]:
                if i >= end and tuple(words[i : i + len(form)]) == form:
                    end = i + len(form)
                    found.append((person, i, end))
        found = sorted([*found, *self._surnames(found)], key=lambda mention: mention[1])
        return [Name(person, first, last, self._possessive(last)) for person, first, last in found]

    def _surnames(self, found):
        """Later mentions by bare surname, if it is that of one person and no other first name is before."""
        owners, taken = {}, set()
        for person, first, last in found:
            owners.setdefault(self.vocabulary.surnames[person], {}).setdefault(person, last)
            taken.update(range(first, last))
        for i in [i for i, word in enumerate(self.words) if word in owners]:
            if len(owners[self.words[i]]) == 1 and i not in taken:
                ((person, seen),) = owners[self.words[i]].items()
                before = self.words[i - 1] if i else ""
                known = not before[:1].isupper() or before in TITLES or before.lower() in OPENERS
                if i >= seen and known:
                    yield person, i, i + 1

    def _possessive(self, last):
        if last == len(self.words) or self.starts[last] != self.ends[last - 1]:
            return False
        return self.words[last] == "'s" or (self.words[last] == "'" and self.words[last - 1][-1] == "s")

    # ------------------------------------------------------------------ sentences, clauses, verbs

    def _find_clauses(self):
        """Clause and sentence of every token, as numbers; a conjunction belongs to the clause it opens."""
        n, fresh, clause, sentence = len(self.words), False, 0, 0
        self.clause, self.sentence, self.clause_start = [0] * n, [0] * n, [0]
        for i, (word, tag) in enumerate(zip(self.words, self.tags, strict=True)):
            if i and (fresh or tag == "c"):
                clause, sentence = clause + 1, sentence + fresh
                self.clause_start.append(i)
            self.clause[i], self.sentence[i] = clause, sentence
            fresh = word in ".!?;:" and tag not in "NG" and self._ends_sentence(i)

    def _ends_sentence(self, i):
        if self.words[i] in "!?;" or i + 1 == len(self.words):
            return True
        if self.starts[i + 1] == self.ends[i]:
            return False  # 43.14, 19:30, and all dots of an ellipsis but the last
        before = self.words[i - 1] if i and self.ends[i - 1] == self.starts[i] else ""
        short = before in ABBREVIATIONS or (len(before) == 1 and before.isupper())
        after = self.words[i + 1][0]
        return self.words[i] == ":" or not (short or (after.isalnum() and not after.isupper()))

    def opens_sentence(self, i):
        return i == 0 or self.sentence[i] != self.sentence[i - 1]

    def _find_verbs(self):
        forms, found, end = self.vocabulary.verb_forms, [], 0
        for i in [i for i, word in enumerate(self.low) if word in forms]:
            lower = self.words[i].islower() or self.opens_sentence(i)
            if i < end or self.tags[i] in "NG" or not lower:
                continue
            for form, verb, kind in forms[self.low[i]]:
                last = self._verb_end(i, form)
                if last:
                    if not self._is_noun(i, kind, len(form) == 1):
                        found.append(Verb(verb, i, last, kind))
                        end = last
                    break
        return found

    def _verb_end(self, first, form):
        """One past the last token of a verb of several words, None if it is not there."""
        at = first + 1
        for word in form[1:]:
            room = self.low[at : at + MOST_BETWEEN + 1]
            if word not in room:
                return None
            after = at + room.index(word)
            if any(self.tags[i] in "NG" + APART or not self.words[i].islower() for i in range(at, after)):
                return None
            at = after + 1
        return at

    def _is_noun(self, i, kind, alone):
        """Whether the word belongs to what an article or a possessive leads, at most two words before it."""
        found = NOUN.search("".join(self.tags[max(i - 4, 0) : i]))
        if not found or not found[2] or not found[1] or found[1] not in PREPOSITION:
            return found is not None
        # not "with a big smile", "with a crowd waving"; "in a match hits" has a subject further back
        lead = self.low[i - 2 - len(found[2])]
        return (kind == "base" and alone) or (kind == "ing" and lead == "with")

    # ------------------------------------------------------------------ groups of names

    def _link(self, a, b):
        """How two names are joined to one group: "," or "and" or ", and", None if they are not."""
        if self.clause[a.first] != self.clause[b.first]:
            return None
        found = LINK.fullmatch("".join(self.tags[i] for i in range(a.last, b.first) if i not in self.blank))
        if not found:
            return None
        run = found[1]
        return ", and" if run[0] == "," and "&" in run else "and" if "&" in run else ","

    def modifies(self, i):
        """Whether a token may stand before a name in its group, as in "Ukraine's silver medalist B"."""
        return self.tags[i] not in NO_MODIFIER

    def _group_before(self, j, singular=False):
        """The names joined to number j and those before it; commas alone join only in front of an "and"."""
        first = j
        if self.links[j] == "and" or (self.links[j] == ", and" and not singular):
            first = j - 1
            while self.links[first] is not None:
                first -= 1
        return self.actors[first : j + 1]

    def _group_after(self, names):
        """The first of some numbers of names and those joined to it; none of none."""
        if not names:
            return []
        last = names[0]
        while last + 1 < len(self.actors) and self.links[last + 1] is not None:
            last += 1
        while last > names[0] and self.links[last] == ",":
            last -= 1
        return self.actors[names[0] : last + 1]

    def _led_by(self, group):
        """What leads a group: "preposition", "verb", "relative" ("who beat B") or None."""
        at, capitals = group[0].first - 1, False
        for _ in range(MOST_MODIFIERS):
            while at in self.blank:
                at -= 1
            if at < 0 or self.clause[at] != self.clause[group[0].first]:
                return None
            tag, word = self.tags[at], self.words[at]
            if tag in "Vr":
                return "verb" if tag == "V" else "relative"
            if tag in PREPOSITION:
                if tag == "p" or not capitals:
                    return None if tag != "p" and self.opens_sentence(at) else "preposition"
                capitals = False  # "of the United States", "in Prague": its object stands before the name
            elif tag in "N&ca,(x":
                return None
            elif word[0].isupper() and word not in TITLES:
                capitals = capitals or self.low[at + 1] not in ("'s", "'")
            at -= 1
        return None

    # ------------------------------------------------------------------ subjects

    def _find_subjects(self):
        self.actors = [name for name in self.names if not name.possessive]
        self.links = [None, *itertools.starmap(self._link, itertools.pairwise(self.actors))]
        done = []
        for verb in self.verbs:
            persons = dict.fromkeys(name.person for name in self._subjects(verb, done))
            done.append(verb._replace(subjects=tuple(persons)))
        self.verbs = done

    def _actors_where(self, condition):
        return [j for j, name in enumerate(self.actors) if condition(name)]

    def _subjects(self, verb, done):
        low, clause = self.low, self.clause[verb.first]
        within = self._actors_where(lambda name: self.clause[name.first] == clause)
        if verb.last < len(low) and low[verb.last] == "by" and verb.first and low[verb.first - 1] in BE:
            return self._group_after([j for j in within if self.actors[j].first > verb.last])
        lead = self._word_before(verb.first)
        before = [j for j in within if self.actors[j].last <= verb.first]
        group = self._subject_before(verb, before, lead) if before else None
        if group:
            return group
        same = [other for other in done if self.clause[other.first] == clause and other.subjects]
        if same:
            return self._names_of(same[-1].subjects)
        if verb.kind == "ing" and self.opens_sentence(verb.first):
            return self._after_comma(verb)
        pronoun = low[lead] if lead >= 0 and self.tags[lead] == "h" else None
        start = self.clause_start[clause]
        if pronoun or (verb.kind == "ing" and verb.first == start + 1 and self.tags[start] == "c"):
            group = self._earlier_subject(clause, done)
            return group if pronoun in (None, "they") or len({name.person for name in group}) == 1 else []
        return []

    def _subject_before(self, verb, before, lead):
        """The subject among the names before a verb in its clause, or None."""
        nearest = self._group_before(before[-1], singular=verb.kind == "s")
        if lead >= nearest[-1].last and self.low[lead] in RELATIVES:
            return nearest
        if self._follows(verb, nearest):
            led = self._led_by(nearest)
            if verb.kind == "s" and led and len(nearest) > 1:
                return nearest[-1:]
            if verb.kind == "ing" or (led and verb.kind == "past") or (led == "verb" and verb.kind == "base"):
                return nearest
        group = nearest
        while self._led_by(group):
            before = [j for j in before if self.actors[j].first < group[0].first]
            if not before:
                return None
            group = self._group_before(before[-1])
        return group

    def _follows(self, verb, group):
        """Whether a verb follows a group at once, adverbs, auxiliaries, indicators, parentheses aside."""
        depth = 0
        for i in range(group[-1].last, verb.first):
            word = self.words[i]
            depth += (word == "(") - (word == ")")
            aside = word == ")" or i in self.blank or (word == "," and i - 1 in self.blank)
            if not (depth or aside or self._is_aside(i)):
                return False
        return True

    def _is_aside(self, i):
        return self.low[i].endswith("ly") or self.low[i] in AUXILIARIES

    def _word_before(self, i):
        """The last token of the clause before i that is no adverb, auxiliary or indicator; or -1."""
        for at in range(i - 1, self.clause_start[self.clause[i]] - 1, -1):
            if at not in self.blank and not self._is_aside(at):
                return at
        return -1

    def _names_of(self, persons):
        return [name for name in self.actors if name.person in persons]

    def _after_comma(self, verb):
        """The first group after the next comma of the sentence."""
        sentence = self.sentence[verb.first]
        within = (i for i in range(verb.last, len(self.low)) if self.sentence[i] == sentence)
        comma = next((i for i in within if self.low[i] == ","), len(self.low))
        return self._group_after(
            self._actors_where(lambda n: n.first > comma and self.sentence[n.first] == sentence)
        )

    def _earlier_subject(self, clause, done):
        """Subject of the nearest clause before that has one: that of its last verb, else its first group."""
        for earlier in range(clause - 1, -1, -1):
            verbs = [verb for verb in done if self.clause[verb.first] == earlier and verb.subjects]
            if verbs:
                return self._names_of(verbs[-1].subjects)
            inside = self._actors_where(lambda n, c=earlier: self.clause[n.first] == c)
            if inside:
                return self._group_after(inside)
        return []


# ------------------------------------------------------------------ for readers


def check_caption(caption, vocabulary):
    """A TypeError or ValueError that says what is no caption, or no vocabulary."""
    if not isinstance(caption, str):
        raise TypeError(f"caption must be a str, got {type(caption).__name__}")
    if not caption.strip():
        raise ValueError("caption must hold some text, got an empty one")
    check_vocabulary(vocabulary)


def mentions(caption, vocabulary):
    """The known names and verbs of a caption, in the order of the text, as `candidates_from_caption` reads
    them.

    Parameters
    ----------
    caption : str
    vocabulary : Vocabulary

    Returns
    -------
    list of Mention

    Notes
    -----
    Names are the longest match of the known surface forms, case-sensitive, on whole words: "Obama's" names
    Obama, "Obama-style" does not. After a full name its bare surname is the same person, unless two names of
    the caption share it or a capitalised word that is no title stands right before it ("Buddy Hackett").

    Verbs are forms with inflections, in lower case but for the first word of a sentence. Between the words of
    a verb ("hit a backhand") up to three others may stand: "hits a two-handed backhand". A form is no verb if
    an article or a possessive leads it, at most two words before ("the waves", "a big smile").

    Sentences end at ``. ! ? ; :``; clauses begin at words such as "as", "while", "after". The subject of a
    verb (C2) is sought in its clause, among the names before it, possessives left out:

    - the nearest group ("A", "A and B", "A (L), B's coach C and D") that no preposition and no verb leads, so
      neither the B of "in a match with B" nor the B of "A hugs B and waves";
    - the nearest group of all where the verb follows it at once and is a participle ("with B standing") or an
      infinitive ("A watches B wave"), or where "who" stands between;
    - the last name alone of "A poses, and B waves": such a group has no singular verb;
    - otherwise the subject of an earlier verb in the clause ("A hugs B and waves");
    - "he", "she" or "they" before the verb, or a participle that opens a clause ("after hitting"): the
      subject of the clause before, of which "he" and "she" want one person;
    - a participle that opens a sentence ("Waving to fans, A arrives"): the first name after the next comma;
      "is hugged by B": B.

    A verb whose subject is none of the known names is not used. A name that is the subject of several verbs
    has the first. Spatial indicators (C4) are those of `caption_places`.

    Examples
    --------
    >>> from cuelearn.mms import Vocabulary, mentions
    >>> words = Vocabulary(["Barack Obama", "Michelle Obama"], ["wave", "stand"])
    >>> caption = "Barack Obama waves with his wife Michelle Obama (R) standing beside him."
    >>> for mention in mentions(caption, words):
    ...     print(mention.kind, mention.label, *mention.subjects, *filter(None, [mention.place]))
    name Barack Obama
    verb wave Barack Obama
    name Michelle Obama right
    verb stand Michelle Obama
    """
    check_caption(caption, vocabulary)
    text = Text(caption, vocabulary)
    called = [str(vocabulary.names[label]) for label in vocabulary.name_label]
    found = []
    for name in text.names:
        place = " and ".join(dict.fromkeys(map(str, text.places.get(name.person, ()))))
        label = called[name.person]
        found.append(Mention("name", label, text.starts[name.first], text.ends[name.last - 1], (), place))
    for verb in text.verbs:
        label = str(vocabulary.verbs[vocabulary.verb_label[verb.verb]])
        subjects = tuple(called[person] for person in verb.subjects)
        found.append(Mention("verb", label, text.starts[verb.first], text.ends[verb.last - 1], subjects))
    return sorted(found, key=lambda mention: mention.start)
