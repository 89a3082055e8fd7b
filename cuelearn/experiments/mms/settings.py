"""Sizes, seeds and grids of the chapter's experiments: fixed here, for every profile, before anything is run."""

#: The papers' range (thesis 5.5), for every method.
C_RANGE = (0.1, 1.0, 10.0, 100.0, 1000.0)
#: The thesis's names: at least 20 occurrences in protocol I, 3 in protocol II.
OCCURRENCES = {"I": 20, "II": 3}
#: Data of figure 5.3. MNIST, Pendigits and satimage stand in for usps, news20 and covtype; letter is the thesis's own.
ARTIFICIAL = ("mnist", "letter", "pendigits", "satimage")
BAG_SIZE = 5
#: Parameters are validated there, once per data set, and then kept along the curves of `quick`.
MIDDLE = {"n_candidates": 20, "p_correlated": 0.25, "p_ambiguous": 0.25}


def settings(profile):
    """Sizes of all experiments of the chapter for a profile.

    Parameters
    ----------
    profile : {"smoke", "quick", "full"}

    Returns
    -------
    dict
        `seeds`: of figure 5.3; `grid`: of C; `effort`: epochs and rounds of `MMS`; `artificial`: bags, test samples, values of L, pairs
        (P_c, P_a); `rounds`: the concave-convex procedure round by round; `naming`: items and identities of the composed corpus, which are
        fewer in the same proportion, so that names occur as often, and seeds; `poses`; `search`: random bags; `bound`: proposition 5.2.
    """
    diagonal = ((0.0, 0.0), (0.25, 0.25), (0.5, 0.5))
    sizes = {
        "smoke": dict(
            seeds=2, grid=(1.0, 100.0), effort=dict(n_epochs=5, n_rounds=3),
            artificial=dict(names=("letter", "pendigits"), n_bags=40, n_test=300, L=(5, 20), hardness=((0.0, 0.0), (0.5, 0.5))),
            rounds=dict(names=("letter",), n_bags=40, L=20, n_epochs=10),
            naming=dict(n_items=300, n_names=30, occurrences={"I": 4, "II": 2}, seeds=2),
            poses=dict(n_items=150, n_test=30, seeds=2), search=dict(n_bags=60), bound=dict(n_bags=40, names=("letter",)),
        ),
        "quick": dict(
            seeds=3, grid=C_RANGE, effort=dict(n_epochs=20, n_rounds=6),
            artificial=dict(names=ARTIFICIAL, n_bags=120, n_test=2000, L=(5, 20, 100), hardness=diagonal),
            rounds=dict(names=ARTIFICIAL, n_bags=120, L=100, n_epochs=50),
            naming=dict(n_items=2000, n_names=30, occurrences=OCCURRENCES, seeds=3),
            poses=dict(n_items=1703, n_test=103, seeds=2), search=dict(n_bags=1000), bound=dict(n_bags=120, names=ARTIFICIAL),
        ),
        "full": dict(
            seeds=3, grid=C_RANGE, effort=dict(n_epochs=60, n_rounds=10),
            artificial=dict(names=ARTIFICIAL, n_bags=300, n_test=10_000, L=(5, 10, 20, 50, 100, 200),
                            hardness=tuple((c, a) for c in (0.0, 0.25, 0.5) for a in (0.0, 0.25, 0.5))),
            rounds=dict(names=ARTIFICIAL, n_bags=300, L=200, n_epochs=100),
            naming=dict(n_items=20_071, n_names=260, occurrences=OCCURRENCES, seeds=5),
            poses=dict(n_items=1703, n_test=103, seeds=5), search=dict(n_bags=1000), bound=dict(n_bags=300, names=ARTIFICIAL),
        ),
    }  # fmt: skip
    return sizes[profile]
