"""The composed corpus of captioned pictures: its form, pictures, words and statistics, and the
candidate sets of its mentions."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import ndimage

from cuelearn.datasets import VERBS, ImageData, captioned, image_cues, make_captioned
from cuelearn.datasets.base import simulator
from cuelearn.mms import candidates_from_caption, mentions

world, EMOJI = simulator("captions"), captioned._cast().emoji

NULL = "null"


def unseen(*args, **options):
    """A corpus whose faces nobody looks at: what is tested on many items is in the words and the boxes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(captioned, "_looks", lambda samples, *rest, **body: samples[:, 0, 0])
        patch.setattr(captioned, "_described", lambda looks, cues: (looks[:, None], {"none": slice(1)}))
        return make_captioned(*args, **options)


@pytest.fixture(scope="module")
def news():
    return unseen(4000, random_state=2)


@pytest.fixture(scope="module")
def harder():
    return unseen(3000, protocol="II", random_state=1)


@pytest.fixture(scope="module")
def poses():
    return unseen(kind="poses")


@pytest.fixture(scope="module")
def seen():
    return make_captioned(120, kind="poses")


@pytest.fixture(scope="module", params=["news", "harder", "poses"])
def data(request):
    return request.getfixturevalue(request.param)


def face_boxes(data, i):
    return np.array([region.box for region in data.regions[i] if region.kind == "face"])


def centres(boxes):
    return (boxes[:, 0] + boxes[:, 2]) / 2, (boxes[:, 1] + boxes[:, 3]) / 2


def test_form(data):
    N, n = len(data.captions), data.bag_sizes.sum()
    assert len(data.regions) == len(data.sizes) == N
    assert data.bag_sizes.shape == data.is_test.shape == data.has_position.shape == (N,)
    assert data.names.shape == data.kinds.shape == data.seeds.shape == (n,) == data.faces.shape[:1]
    assert data.samples.shape == (n, 2, 2) and data.samples.dtype == np.int32
    assert [
        sum(region.kind == "face" for region in regions) for regions in data.regions
    ] == data.bag_sizes.tolist()
    assert data.provenance.tier == "generated"
    assert data.provenance.sha256 is None
    assert "composed" in data.description
    assert "composed" in repr(data) and "random_state=" in data.provenance.source
    assert data.statistics.columns.tolist() == ["what", "thesis", "ours", "note"]
    mentioned = set(data.labels[data.mentions["name"]].tolist())
    assert set(data.vocabulary.names.tolist()) == mentioned | {NULL}
    assert data.mentions["item"].is_monotonic_increasing


def test_forms_apart(news, poses):
    assert news.poses is None and news.verbs is None and news.vocabulary.verbs.tolist() == [NULL]
    assert poses.vocabulary.verbs.tolist() == [NULL, *VERBS] and set(poses.verbs.tolist()) == {NULL, *VERBS}
    assert len(poses.captions) == 1703 and poses.is_test.sum() == 103 and not poses.has_position.any()


@pytest.mark.parametrize("options", [{}, {"protocol": "II"}, {"kind": "poses"}])
def test_same_seed_same_bits(options):
    one, same, other = (make_captioned(40, random_state=seed, **options) for seed in (5, 5, 6))
    assert one.captions == same.captions and one.regions == same.regions
    for a, b in zip(one[2:], same[2:]):
        if isinstance(a, np.ndarray):
            assert_array_equal(a, b)
    assert one.statistics.equals(same.statistics) and one.mentions.equals(same.mentions)
    assert one.captions != other.captions and not np.array_equal(one.bag_sizes, other.bag_sizes)
    assert unseen(40, random_state=np.random.default_rng(5), **options).captions == one.captions


def test_test_items_have_drawings_of_their_own(data):
    in_test = np.repeat(data.is_test, data.bag_sizes)
    for part in range(2 if data.poses is not None else 1):
        used = [np.unique(data.samples[rows, part]) for rows in (in_test, ~in_test)]
        held, taught = (rows[rows >= 0] for rows in used)
        assert np.intersect1d(held, taught).size == 0
        # two fifths of a thing's drawings are held back, at most
        for thing in np.unique(EMOJI.thing[held]):
            assert np.sum(EMOJI.thing[held] == thing) <= 2 * np.sum(EMOJI.thing == thing) // 5
    assert np.all(data.samples[:, 0, 0] >= 0)
    assert np.all(data.samples[:, 1] == -1) == (data.poses is None)


def test_a_person_is_a_thing(data):
    known = data.kinds == "identity"
    assert np.array_equal(data.samples[:, 0, 1] >= 0, data.kinds == "false detection")
    thing = EMOJI.thing[data.samples[:, 0, 0]]
    of_name = {}
    for name, own in zip(data.names[data.names != NULL].tolist(), thing[data.names != NULL].tolist()):
        assert of_name.setdefault(name, own) == own
    people = [of_name[name] for name in np.unique(data.names[known]).tolist()]
    assert len(set(EMOJI.family[people])) == len(people) and EMOJI.n_drawings()[people].min() >= 7
    # nobody else looks like an identity, or is a piece of clothing
    strangers = np.unique(thing[data.kinds == "stranger"])
    assert not set(EMOJI.family[strangers]) & set(EMOJI.family[people])
    assert EMOJI.n_drawings()[strangers].min() >= 4
    if data.poses is not None:
        clothes = EMOJI.thing[data.samples[:, 1, 0]]
        assert set(EMOJI.names[clothes]) == set(captioned.CLOTHES)
        assert not set(EMOJI.family[clothes]) & {*EMOJI.family[strangers], *EMOJI.family[people]}
    assert set(data.names[data.kinds == "false detection"].tolist()) == {NULL}
    assert NULL not in data.names[data.kinds != "false detection"]


def test_all_drawings_are_used_equally_often(data):
    in_test, used = np.repeat(data.is_test, data.bag_sizes), data.samples[:, 0]
    for half in (False, True):
        rows, uses = np.unique(used[in_test == half], return_counts=True)
        thing = EMOJI.thing[rows]
        for one in np.unique(thing[rows >= 0]):
            own = uses[(thing == one) & (rows >= 0)]
            assert own.max() - own.min() <= 1


def test_the_split_varies_and_the_people_stay():
    one, other = unseen(300), unseen(300, random_state=1)
    thing_of = [dict(zip(d.names.tolist(), EMOJI.thing[d.samples[:, 0, 0]])) for d in (one, other)]
    both = set(one.names[one.kinds == "identity"]) & set(other.names[other.kinds == "identity"])
    assert len(both) > 20 and all(thing_of[0][name] == thing_of[1][name] for name in both)
    held = [set(d.samples[d.rows(d.is_test)].ravel().tolist()) for d in (one, other)]
    taught = set(other.samples[other.rows(~other.is_test)].ravel().tolist())
    assert (held[0] & taught) - {-1}


def test_a_face_is_a_drawing_changed_before_a_colour(seen):
    """No two faces are the same photograph; turned back, a body lies on its drawing."""
    faces = np.array([*seen.looks(np.arange(len(seen.faces)))])
    assert faces.shape[1:] == (64, 64, 3) and faces.dtype == np.uint8
    assert len(np.unique(faces.reshape(len(faces), -1), axis=0)) == len(faces)
    whole = np.flatnonzero(seen.kinds != "false detection")
    verb = np.array([VERBS.index(one) for one in seen.verbs[whole]])
    assert_array_equal(seen.angles[whole, 0], 36.0 * verb)

    def upright(row, turn):
        """Where the picture differs from its background, about the middle, turned by so many degrees."""
        (look,) = seen.looks([row], body=True)
        drawn = np.abs(look.astype(int) - look[0, 0]).sum(axis=2) > 60
        return ndimage.rotate(drawn.astype(float), -turn, reshape=False, order=1)

    apart = []
    for row, k in zip(whole[:60], verb[:60]):
        alpha = EMOJI.pictures[seen.samples[row, 1, 0], ..., 3] / 255
        found = [np.corrcoef(upright(row, 36.0 * j).ravel(), alpha.ravel())[0, 1] for j in range(10)]
        apart.append(np.argmax(found) == k)
    assert np.mean(apart) > 0.6  # clothes are nearly symmetrical


def test_a_false_detection_is_two_halves(seen):
    row = int(np.flatnonzero(seen.kinds == "false detection")[0])
    (look,) = seen.looks([row])
    rng = np.random.default_rng([0, seen.seeds[row]])
    colour = rng.integers(0, 256, 3, dtype=np.uint8)
    left, right = (captioned.mildly_changed(EMOJI.pictures[k], rng) for k in seen.samples[row, 0])
    assert_array_equal(look[:, :32], captioned.before(left, colour)[:, 32:])
    assert_array_equal(look[:, 32:], captioned.before(right, colour)[:, :32])


def test_columns(seen):
    assert seen.faces.dtype == seen.poses.dtype == np.float32
    rows = np.array([0, 5, len(seen.faces) - 1])
    for X, columns, body in ((seen.faces, seen.face_cues, False), (seen.poses, seen.pose_cues, True)):
        assert X.shape[1] == max(part.stop for part in columns.values())
        images = ImageData(np.array([*seen.looks(rows, body)]), np.zeros(3, int), ["any"])
        expected = image_cues(images, list(columns))
        assert expected.cues == columns
        for part in columns.values():
            whole = expected.X[:, part].sum(axis=1, keepdims=True)
            assert_allclose(X[rows][:, part] ** 2, expected.X[:, part] / whole, atol=1e-6)
            assert_allclose(np.linalg.norm(X[:, part], axis=1), 1, atol=1e-5)


def test_one_name_once(data):
    bag_of = data.bag_of
    people = data.names != NULL
    pairs = np.char.add(np.char.add(bag_of[people].astype(str), "|"), data.names[people])
    assert np.unique(pairs).size == people.sum()
    assert not data.mentions.duplicated(["item", "name"]).any()
    per_caption = np.bincount(data.mentions["item"], minlength=len(data.captions))
    assert per_caption.max() <= 9 and 1 <= data.bag_sizes.min() and data.bag_sizes.max() <= 15
    pictured = data.mentions[data.mentions["face"] >= 0]
    assert not pictured["face"].duplicated().any()
    assert_array_equal(data.labels[pictured["name"]], data.names[pictured["face"]])
    assert_array_equal(bag_of[pictured["face"]], pictured["item"])
    # A name mentioned and not pictured is not in the picture after all.
    absent = data.mentions[data.mentions["face"] < 0]
    absent = np.char.add(np.char.add(absent["item"].to_numpy().astype(str), "|"), data.labels[absent["name"]])
    assert not np.isin(absent, pairs).any()


def test_truth_against_a_plain_reading(data):
    kept = data.labels[::2].tolist()
    verbs = VERBS[::2] if data.poses is not None else None
    truth = data.truth(kept, verbs)
    expected = np.full((data.names.size, 2), NULL, dtype=object)
    for mention in data.mentions.itertuples():
        name = str(data.labels[mention.name])
        if mention.face >= 0 and name in set(kept[:3000]) | set(kept[3000:]):
            expected[mention.face] = name, mention.verb if verbs and mention.verb in verbs else NULL
    assert_array_equal(truth if verbs else truth[:, None], expected[:, : 2 if verbs else 1])
    everything = data.truth()
    assert np.all((everything == data.names) | (everything == NULL))
    assert np.array_equal(everything != NULL, data.mentioned)
    assert_array_equal(data.truth(data.vocabulary.names), everything)
    with pytest.raises(ValueError, match="^names must"):
        data.truth(["Nobody Known"])
    unknown = "^verbs must be None" if data.poses is None else "^verbs must be among"
    with pytest.raises(ValueError, match=unknown):
        data.truth(kept, ["sleep"])


def test_names_with_counts_captions_of_training_items(news):
    counts = dict.fromkeys(news.labels.tolist(), 0)
    for mention in news.mentions.itertuples():
        counts[str(news.labels[mention.name])] += not news.is_test[mention.item]
    assert news.names_with(4) == [name for name in news.labels.tolist() if counts[name] >= 4]
    first = np.unique(news.mentions["name"][news.mentions["item"] < 10])
    assert np.sum(news.occurrences(np.arange(10)) > 0) == first.size
    for bad in (0, 1.5, None):
        with pytest.raises(ValueError, match="^min_count must"):
            news.names_with(bad)
    for bad in ([-1], [4000], [0.5], np.zeros(5, bool)):
        with pytest.raises(ValueError, match="^items must"):
            news.occurrences(bad)


def test_frequencies_fall_with_the_rank():
    data = unseen(3000, n_names=100, exponent=1.0)
    counts = data.occurrences(np.arange(3000))[:100]
    tens = counts.reshape(-1, 10).sum(axis=1)
    assert np.all(np.diff(tens[:5]) < 0)
    slope = np.polyfit(np.log(np.arange(1, 101)), np.log(counts), 1)[0]
    assert -1.1 < slope < -0.7  # a name occurs once in a caption, which flattens the top
    even = unseen(3000, n_names=100, exponent=0).occurrences(np.arange(3000))[:100]
    assert even.std() < 1.5 * np.sqrt(even.mean())  # as chance scatters them


def test_partners_are_pictured_together():
    def together(p_correlated):
        data = unseen(1500, exponent=0.3, p_correlated=p_correlated)
        rank = {name: k for k, name in enumerate(data.labels[:214].tolist())}
        known = data.kinds == "identity"
        held = set(zip(data.bag_of[known].tolist(), [rank[name] for name in data.names[known].tolist()]))
        return sum((i, k ^ 1) in held for i, k in held) / len(held)

    assert together(0.0) < 0.02 and together(0.8) > 0.15


def test_names_are_unique_and_the_same_in_every_corpus(news, harder):
    for data in (news, harder):
        assert np.unique(data.labels).size == data.labels.size
        surnames = [name.split()[1] for name in data.labels.tolist()]
        assert len(set(surnames[:460])) == 460 and not set(surnames[:460]) & set(surnames[460:])
    assert set(news.labels[:214].tolist()) == set(harder.labels[:214].tolist())
    assert news.labels[:214].tolist() != harder.labels[:214].tolist()
    many = {world.tail_name(k, 460) for k in range(100_000)}
    assert len(many) == 100_000
    with pytest.raises(ValueError, match="^n_items must"):
        world.tail_name(10**8, 460)


def test_captions_are_clean_text(data):
    for caption in data.captions:
        assert re.fullmatch(r"[A-Z][A-Za-z0-9 ,.:()]*[.)]", caption), caption
        assert not re.search(r"  | [,.:)]|,,|,\.|\.\.|\( |\{|null|None", caption), caption
        assert caption.count("(") == caption.count(")")
        for sentence in re.findall(r"\. (\S)", caption):
            assert sentence.isupper() or sentence == "("
    assert len(set(data.captions)) > 0.99 * len(data.captions)


def test_verbs_are_said_of_the_right_people(poses):
    pictured = poses.mentions[poses.mentions["face"] >= 0]
    said = pictured["verb"].to_numpy(dtype=str)
    false = poses.kinds[pictured["face"]] == "false detection"
    assert np.all((said == poses.verbs[pictured["face"]]) | (said == NULL) | false)
    assert 0.7 < np.mean(said != NULL) < 0.95
    form = {verb.label: f"{verb.third}|{verb.base}|{verb.gerund}|{verb.past}" for verb in world.VERBS}
    for mention in poses.mentions[poses.mentions["verb"] != NULL].itertuples():
        assert re.search(rf"\b({form[mention.verb]})\b", poses.captions[mention.item])
    unpictured = poses.mentions["verb"][poses.mentions["face"] < 0]
    assert (unpictured != NULL).sum() > 50 and (unpictured == NULL).sum() > 50


TAG = r"\((?:L|R|C|left|right|centre|top|bottom)\)|, (?:left|right|centre|top|bottom)[,.]|from left to right"


def test_only_items_with_positions_tell_places(news, harder):
    for data in (news, harder):
        told = np.array([bool(re.search(TAG, caption, re.IGNORECASE)) for caption in data.captions])
        assert_array_equal(told, data.has_position)
        placed = np.unique(data.mentions["item"][data.mentions["place"] != ""])
        assert_array_equal(placed, np.flatnonzero(data.has_position))
        # Where the words do not tell of places, they still occur.
        others = np.array(data.captions)[~told]
        assert sum(" left " in caption or " rights " in caption for caption in others) > 5
    assert not harder.is_test[harder.has_position].any() and news.is_test[news.has_position].any()


def test_places_agree_with_the_boxes(news):
    placed = news.mentions[(news.mentions["place"] != "") & (news.mentions["face"] >= 0)]
    first = np.append(0, np.cumsum(news.bag_sizes))
    common = ("left", "right", "middle", "top", "bottom", "2nd from left")
    checked = {}
    for i, group in placed.groupby("item"):
        x, y = centres(face_boxes(news, i))
        at = group["face"].to_numpy() - first[i]
        for m, place in zip(at.tolist(), group["place"].tolist()):
            checked[place] = checked.get(place, 0) + 1
            if x.size == 1:
                continue
            if place in ("left", "right"):
                assert (np.argmin if place == "left" else np.argmax)(x) == m
            elif place in ("top", "bottom"):
                assert (np.argmin if place == "top" else np.argmax)(y) == m and x.size == 2
            elif place == "middle":
                assert x.size % 2 == 1 and np.sum(x < x[m]) == x.size // 2
            else:
                assert int(place[0]) - 1 == np.sum(x < x[m])
        if "2nd from left" in group["place"].tolist():
            assert len(group) == x.size and np.all(np.diff(x[at]) > 0)
    assert min(checked[place] for place in common) >= 10
    for i in np.flatnonzero(news.has_position):
        assert np.unique(centres(face_boxes(news, i))[0]).size == news.bag_sizes[i]


def test_the_order_of_regions_tells_nothing_of_the_place(news):
    pairs = np.flatnonzero((news.bag_sizes == 2) & news.has_position)
    ascending = [centres(face_boxes(news, i))[0] for i in pairs]
    assert 0.4 < np.mean([x[0] < x[1] for x in ascending]) < 0.6


def test_boxes(data):
    for i in range(0, len(data.captions), 7):
        width, height = data.sizes[i]
        boxes = np.array([region.box for region in data.regions[i]])
        assert np.all(boxes[:, :2] >= 0) and np.all(boxes[:, 2] <= width) and np.all(boxes[:, 3] <= height)
        assert np.all(boxes[:, 2:] - boxes[:, :2] > 20)
        faces = face_boxes(data, i)
        for a in range(len(faces)):
            for b in range(a):
                apart_x = max(faces[a, 0], faces[b, 0]) >= min(faces[a, 2], faces[b, 2])
                apart_y = max(faces[a, 1], faces[b, 1]) >= min(faces[a, 3], faces[b, 3])
                assert apart_x or apart_y


def test_a_face_lies_in_its_own_body_alone(poses):
    for regions in poses.regions:
        assert [region.kind for region in regions] == ["face", "body"] * (len(regions) // 2)
        x, y = centres(np.array([region.box for region in regions[::2]]))
        for m, region in enumerate(regions[1::2]):
            x0, y0, x1, y1 = region.box
            near = (np.abs(x - (x0 + x1) / 2) <= 0.25 * (x1 - x0)) & (y0 <= y) & (y <= y1)
            assert np.flatnonzero(near).tolist() == [m]


def ours(data, what):
    return float(data.statistics.set_index("what")["ours"][what])


def test_exact_numbers_of_the_full_corpus():
    """What the thesis prints is exact in the plan; composing the full corpus is left to the long test."""
    for protocol, share, n_test in (("I", 0.2, 4014), ("II", 10_071 / 20_071, 10_071)):
        n_faces, has_position, is_test = world.plan(np.random.default_rng(0), 20_071, False, protocol, share)
        assert (n_faces.size, n_faces.sum(), n_faces.max(), n_faces.min()) == (20_071, 31_147, 15, 1)
        assert has_position.sum() == 3_105 and is_test.sum() == n_test
        assert (is_test & has_position).any() == (protocol == "I")
    n_faces, _, is_test = world.plan(np.random.default_rng(0), 1703, True, "I", 103 / 1703)
    assert n_faces.size == 1703 and is_test.sum() == 103


@pytest.mark.parametrize("n", [20, 77, 1000])
def test_shares_of_a_small_corpus(n):
    n_faces, has_position, is_test = world.plan(np.random.default_rng(0), n, False, "I", 0.2)
    assert n_faces.size == n and n_faces.sum() == round(n * 31_147 / 20_071) and n_faces.min() == 1
    assert has_position.sum() == round(n * 3_105 / 20_071) and is_test.sum() == round(0.2 * n)


def test_statistics_of_a_mid_size_corpus(news, harder):
    assert ours(news, "items") == 4000 and ours(news, "faces") == round(4000 * 31_147 / 20_071)
    assert ours(news, "items with spatial indicators") == round(4000 * 3_105 / 20_071)
    # at 4 occurrences
    assert ours(news, "names in 20 or more training captions") == pytest.approx(214, abs=25)
    assert ours(news, "RANDOM, training, 20 occurrences (%)") == pytest.approx(73.1, abs=2)
    # Sampling alone moves a test share by about 1.5 points; the printed 66.0 is declared as not matched.
    test, training = (ours(news, f"RANDOM, {part}, 20 occurrences (%)") for part in ("test", "training"))
    assert test == pytest.approx(training, abs=4.5)
    assert "7 points" in news.statistics.set_index("what")["note"]["RANDOM, test, 20 occurrences (%)"]
    assert ours(harder, "RANDOM, training, 3 occurrences (%)") == pytest.approx(37.0, abs=2.5)
    assert ours(harder, "RANDOM, training, 3 occurrences, with positions (%)") == pytest.approx(70.8, abs=3.5)
    assert ours(harder, "RANDOM, test, 3 occurrences (%)") == pytest.approx(39.5, abs=5)


@pytest.mark.parametrize("n_faces, n_names", [(1, 1), (1, 3), (2, 2), (3, 3), (3, 1), (2, 4)])
def test_chance_against_enumeration(n_faces, n_names):
    def labelings(faces):
        if not faces:
            return [()]
        pairs = [(w, rest) for w in range(n_names + 1) for rest in labelings(faces - 1)]
        return [(w, *rest) for w, rest in pairs if w == 0 or w not in rest]

    def right(n_named, pinned, n_false):
        return world.expected_right(n_faces, n_names, n_named, pinned, n_false)

    every = np.array([z for z in labelings(n_faces) if any(z)])
    for n_named in range(min(n_faces, n_names) + 1):
        truth = np.array([m + 1 if m < n_named else 0 for m in range(n_faces)])
        assert right(n_named, 0, 0) == pytest.approx((every == truth).sum(axis=1).mean())
        for pinned in range(1, n_named + 1) if n_faces > 1 else ():
            left = every[(every[:, :pinned] == truth[:pinned]).all(axis=1)]
            assert right(n_named, pinned, 0) == pytest.approx((left == truth).sum(axis=1).mean())
        if n_faces > n_named + 1:
            left = every[every[:, -1] == 0]
            assert right(n_named, 0, 1) == pytest.approx((left == truth).sum(axis=1).mean())


@pytest.mark.long
def test_full_corpus():
    data = unseen()
    assert data.faces.shape == (31_147, 1) and data.bag_sizes.max() == 15
    assert ours(data, "most names in a caption") == 9 and ours(data, "different names in captions") > 10_000
    assert ours(data, "names in 20 or more training captions") == pytest.approx(214, abs=12)
    assert ours(data, "names in 3 or more training captions") == 460
    assert ours(data, "RANDOM, training, 20 occurrences (%)") == pytest.approx(73.1, abs=1)
    data = unseen(protocol="II")
    assert (~data.is_test).sum() == 10_000 and not data.is_test[data.has_position].any()
    assert ours(data, "names in 3 or more training captions") == 460
    assert ours(data, "different names in captions") > 10_000
    assert ours(data, "RANDOM, training, 3 occurrences (%)") == pytest.approx(37.0, abs=1)
    assert ours(data, "RANDOM, training, 3 occurrences, with positions (%)") == pytest.approx(70.8, abs=3)
    assert ours(data, "RANDOM, test, 3 occurrences (%)") == pytest.approx(39.5, abs=2.5)


def candidates_of(data, min_count):
    """Candidate sets of all items from their mentions, and the truth as labels of their classes, by item."""
    poses = data.poses is not None
    words = data.vocabulary.only(names=data.names_with(min_count))
    attributes = ("name", "verb") if poses else ("name",)
    items = [candidates_from_caption(*item, words, attributes=attributes) for item in data.items]
    truth = data.truth(words.names, words.verbs) if poses else data.truth(words.names)[:, None]
    numbers = [{label: k for k, label in enumerate(labels.tolist())} for labels in (words.names, words.verbs)]
    labels = np.array([[number[label] for number, label in zip(numbers, row)] for row in truth.tolist()])
    return items, np.split(labels, np.cumsum(data.bag_sizes)[:-1])


def is_candidate(item, labels):
    """Whether a labeling is among an item's candidates, listed or not."""
    if isinstance(item.candidates, np.ndarray):
        return bool((item.candidates == labels).all(axis=(1, 2)).any())
    rows = [(0,) * labels.shape[1], *map(tuple, item.candidates.words.tolist())]
    words = [rows.index(row) if row in rows else -1 for row in map(tuple, labels.tolist())]
    used = [word for word in words if word]
    once = min(words) >= 0 and len(set(used)) == len(used) > 0
    return once and bool(item.candidates.allowed[range(len(words)), words].all())


def test_the_truth_is_a_candidate(data):
    """But where all names known are of people not pictured: then not every face can be null."""
    min_count = 1 if data.poses is not None else max(3, round(20 * len(data.captions) / 20_071))
    items, labels = candidates_of(data, min_count)
    kept = np.isin(data.labels, data.names_with(min_count))
    names_here = np.bincount(
        data.mentions["item"], weights=kept[data.mentions["name"]], minlength=len(items)
    ).astype(int)
    nobody = 0
    for i, (item, own) in enumerate(zip(items, labels)):
        assert len(item.words) == names_here[i], data.captions[i]
        if data.poses is not None:
            assert item.instances == [(2 * m, 2 * m + 1) for m in range(len(own))]
        if names_here[i] and not own.any():
            nobody += 1
            assert not is_candidate(item, own)
        else:
            assert is_candidate(item, own), data.captions[i]
    share = 100 * nobody / len(items)
    if data.poses is not None:
        assert 0 < share < 3
    else:
        said = ours(data, "% of items whose true labeling is no candidate, 20 occurrences")
        assert share == pytest.approx(said, abs=1e-3)
        assert 0 < share < 10
        # some are too large to list
        assert any(not isinstance(item.candidates, np.ndarray) for item in items)


def test_mentions_stand_in_the_order_of_the_text(data):
    for i, caption in enumerate(data.captions[:1500]):
        assert [m.name for m in mentions(caption, data.vocabulary)] == [
            m.name for m in data.caption_mentions(i)
        ], caption


def test_random_accuracy_is_that_of_the_candidate_sets(harder):
    """The statistics count by formula; here every candidate of every set is weighed."""
    items, labels = candidates_of(harder, 3)
    listed = np.array([i for i, item in enumerate(items) if isinstance(item.candidates, np.ndarray)])
    assert listed.size > 0.98 * len(items)
    right = sum((items[i].candidates == labels[i]).mean(axis=0).sum() for i in listed)
    expected = world.random_accuracy(harder, harder.names_with(3), listed, True)
    assert right / harder.bag_sizes[listed].sum() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"n_items": 19}, "n_items must be an integer >= 20"),
        ({"n_items": 100.5}, "n_items must"),
        ({"kind": "pose"}, "kind must"),
        ({"protocol": "III"}, "protocol must"),
        ({"kind": "poses", "protocol": "II"}, "protocol must"),
        ({"n_names": 29}, "n_names must"),
        ({"n_names": 215}, "n_names must"),
        ({"exponent": -0.1}, "exponent must"),
        ({"p_correlated": 1.1}, "p_correlated must"),
        ({"p_correlated": -1}, "p_correlated must"),
        ({"test_share": 0.95}, "test_share must"),
        ({"test_share": 0.85, "protocol": "II"}, "test_share must"),
        ({"random_state": "x"}, "random_state must"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        make_captioned(**{"n_items": 50, **options})


EXTREMES = [{"test_share": 0.0}, {"n_names": 30}, {"kind": "poses", "n_names": 30}]


@pytest.mark.parametrize("options", [*EXTREMES, {"p_correlated": 1.0}, {"exponent": 3.0}])
def test_extremes(options):
    data = unseen(300, **options)
    assert len(data.captions) == 300 and data.statistics["ours"].notna().all()
