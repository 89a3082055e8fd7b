"""The words that labels can be made of, with their surface forms."""

from collections.abc import Mapping

import numpy as np

from cuelearn.mms.english import ARTICLES, SUFFIXES, WORD, inflections, kind_of, tokens

__all__ = ["Vocabulary", "check_vocabulary"]

#: What the label 0 of every attribute is called.
NULL = "null"


def name_forms(form, further):
    """What stands for a name: (rank, words, kind)."""
    yield 0, tuple(tokens(form)[0]), None


def verb_forms(form, further):
    """The form and its inflections, which rank behind given forms, those of a further form last."""
    first, *rest = [word.lower() for word in tokens(form)[0]]
    rest = tuple(word for word in rest if word not in ARTICLES)
    yield 0, (first, *rest), kind_of(first) if further else "base"
    for inflected, kind in inflections(first):
        yield 1 + further, (inflected, *rest), kind


def index_of(what, labels, forms_of):
    """First word of a form -> [(its words, number of the label, kind)], longest first."""
    owner = {}
    for number, (label, forms) in enumerate(labels.items()):
        for position, form in enumerate(forms):
            for rank, words, kind in forms_of(form, position > 0):
                known = owner.get(words)
                if known is None or known[0] > rank:
                    owner[words] = rank, number, kind
                elif rank == known[0] == 0 and known[1] != number:
                    both = f"got {form!r} for {list(labels)[known[1]]!r} and {label!r}"
                    raise ValueError(f"{what} must give a surface form to one label, {both}")
    index = {}
    for words, (_, number, kind) in owner.items():
        index.setdefault(words[0], []).append((words, number, kind))
    for entries in index.values():
        entries.sort(key=lambda entry: -len(entry[0]))
    return index


def is_listing(value):
    return hasattr(value, "__iter__") and not isinstance(value, (str, bytes))


def given_words(what, words):
    """Labels with their surface forms, from a list or a dict."""
    if not is_listing(words):
        wanted = "a list of words or a dict from a word to its surface forms"
        raise TypeError(f"{what} must be {wanted}, got {words!r}")
    labels = {}
    for label, forms in words.items() if isinstance(words, Mapping) else ((word, ()) for word in words):
        if not is_listing(forms):
            raise TypeError(f"{what}[{label!r}] must be a list of surface forms, got {forms!r}")
        for form in (label, *forms):
            if not isinstance(form, str):
                raise TypeError(f"{what} must hold words as str, got {form!r}")
            if not WORD.search(form):
                raise ValueError(f"{what} must hold words with at least one letter, got {form!r}")
        if str(label) == NULL:
            raise ValueError(f"{what} must not hold {NULL!r}, which stands for none of the words")
        if label in labels:
            raise ValueError(f"{what} must hold every word once, got {label!r} twice")
        labels[str(label)] = [label, *forms]
    return labels


def surname_of(name):
    words = [word for word in tokens(name)[0] if word not in SUFFIXES]
    return words[-1] if len(words) > 1 else None


class Vocabulary:
    r"""The words that labels can be made of.

    Parameters
    ----------
    names : list of str, or dict of str to list of str
        Labels, or labels with further surface forms: ``{"Barack Obama": ["President of the USA"]}``. A label
        is a form of itself.
    verbs : list of str, or dict of str to list of str, default ()
        Base forms such as "wave" or "hit a backhand", or labels with further forms (irregular ones,
        synonyms): ``{"shake hands": ["shook hands"], "backhand": ["hit a backhand"]}``. The regular
        inflections of the first word of a label or form are added: waves, waving, waved.

    Attributes
    ----------
    names, verbs : ndarray of str
        The labels, "null" first: label k of the attribute is called ``names[k]`` (``verbs[k]``).

    Raises
    ------
    ValueError
        If a word is "null", given twice, or a surface form given for two labels. (An inflection that two
        labels share goes to the one it is derived from, before one that has it from a further form, then to
        the first.)

    Examples
    --------
    >>> from cuelearn.mms import Vocabulary
    >>> words = Vocabulary(["Roger Federer", "Andy Roddick"], {"backhand": ["hit a backhand"]})
    >>> words.names.tolist(), words.verbs.tolist()
    (['null', 'Roger Federer', 'Andy Roddick'], ['null', 'backhand'])
    >>> words.only(names=["Andy Roddick"]).names.tolist()
    ['null', 'Andy Roddick']
    """

    def __init__(self, names, verbs=()):
        people, actions = given_words("names", names), given_words("verbs", verbs)
        if not people:
            raise ValueError("names must hold at least one name, got none")
        self.people, self.actions = list(people), list(actions)
        self.surnames = [surname_of(name) for name in self.people]
        self.name_forms = index_of("names", people, name_forms)
        self.verb_forms = index_of("verbs", actions, verb_forms)
        self._keep(self.people, self.actions)

    def _keep(self, names, verbs):
        self.names, self.verbs = np.array([NULL, *names]), np.array([NULL, *verbs])
        of_name = {name: k for k, name in enumerate(names, 1)}
        of_verb = {verb: k for k, verb in enumerate(verbs, 1)}
        self.name_label = [of_name.get(name, 0) for name in self.people]
        self.verb_label = [of_verb.get(verb, 0) for verb in self.actions]

    def only(self, names=None, verbs=None):
        """The `Vocabulary` of these labels (all by default), in their order; the others count as null. They
        are still read, so that "(L)" after a name that counts as null says that the region at the left is
        null, and its verb goes to no other name."""
        kept = []
        for what, chosen, labels in (("names", names, self.names), ("verbs", verbs, self.verbs)):
            known = labels[1:].tolist()
            if chosen is not None and not is_listing(chosen):
                raise TypeError(f"{what} must be a list of labels, got {chosen!r}")
            chosen = set(known if chosen is None else chosen) - {NULL}
            if not chosen <= set(known):
                other = sorted(map(str, chosen - set(known)))[0]
                raise ValueError(f"{what} must be labels of the vocabulary, got {other!r}")
            kept.append([label for label in known if label in chosen])
        if not kept[0]:
            raise ValueError("names must keep at least one name, got none")
        made = object.__new__(Vocabulary)
        vars(made).update(vars(self))
        made._keep(*kept)
        return made

    def labels_of(self, attribute):
        """Labels of the attribute "name" or "verb", "null" first."""
        return self.names if attribute == "name" else self.verbs

    def __repr__(self):
        return f"<Vocabulary: {len(self.names) - 1} names, {len(self.verbs) - 1} verbs>"


def check_vocabulary(vocabulary):
    """A TypeError if this is none."""
    if not isinstance(vocabulary, Vocabulary):
        raise TypeError(f"vocabulary must be a Vocabulary, got {type(vocabulary).__name__}")
