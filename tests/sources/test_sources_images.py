from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw

from pipeline.errors import InputError
from pipeline.sources import data_source
from pipeline.sources.prepare import preparation

SHAPES = ("disc", "square")


def draw(kind, seed, size=(40, 30)):
    rng = np.random.default_rng(seed)
    image = Image.new("RGB", size, tuple(int(v) for v in rng.integers(0, 90, 3)))
    left, top = int(rng.integers(2, 14)), int(rng.integers(2, 10))
    pen = ImageDraw.Draw(image)
    shape = (left, top, left + 16, top + 16)
    (pen.ellipse if kind == "disc" else pen.rectangle)(shape, fill=tuple(int(v) for v in rng.integers(150, 255, 3)))
    return image


@pytest.fixture
def folder(tmp_path):
    for number, split in enumerate(("train", "test")):
        for kind in SHAPES:
            path = tmp_path / "images" / split / kind
            path.mkdir(parents=True)
            for i in range(10 if split == "train" else 4):
                draw(kind, 100 * number + i).save(path / f"{i}.png")
    return tmp_path


def read(folder, model=None, **args):
    return data_source({"imagefolder": "images", "args": args}, folder, model)


def test_splits_come_from_folders_and_select_from_train_class_by_class(folder):
    data = read(folder, select_share=0.2)
    assert [len(split) for split in (data.train, data.select, data.test)] == [16, 4, 8]
    assert sorted(data.select.slices()["class"]) == ["disc", "disc", "square", "square"]
    assert not set(data.train.names) & set(data.select.names)
    inputs, targets = data.test.batch(np.asarray([0, 7]))
    assert inputs["x"].shape == (2, 3, 224, 224) and inputs["x"].dtype == np.float32
    assert targets["label"].tolist() == [0, 1]


def test_val_selects_where_there_is_a_test_folder_and_tests_where_there_is_none(folder):
    images = folder / "images"
    (images / "train").rename(images / "t")
    (images / "test").rename(images / "val")
    (images / "t").rename(images / "train")
    data = read(folder)
    assert (data.test.home, data.select.home) == ("val", "train")
    (images / "val").rename(images / "test")
    for kind in SHAPES:
        (images / "val" / kind).mkdir(parents=True)
        draw(kind, 7).save(images / "val" / kind / "a.png")
    data = read(folder)
    assert (data.test.home, data.select.home, len(data.train)) == ("test", "val", 20)


def test_a_timm_model_prepares_images_as_timm_does(folder):
    import timm
    from timm.data import create_transform, resolve_data_config

    model = {"timm": "test_resnet", "inputs": ["x"]}
    config = resolve_data_config({}, model=timm.create_model("test_resnet"))
    expected = create_transform(**config, is_training=False)(Image.open(folder / "images" / "test" / "disc" / "0.png")).numpy()
    inputs, _ = read(folder, model).test.batch(np.asarray([0]))
    assert np.array_equal(inputs["x"][0], expected)
    assert read(folder, model, size=96).test.batch(np.asarray([0]))[0]["x"].shape == (1, 3, 96, 96)


def test_a_timm_model_of_one_channel_gets_grey_images(folder):
    inputs, _ = read(folder, {"timm": "test_resnet", "args": {"in_chans": 1}}, size=32).test.batch(np.arange(3))
    assert inputs["x"].shape == (3, 1, 32, 32) and -1.0 <= inputs["x"].min() < inputs["x"].max() <= 1.0
    with pytest.raises(InputError, match="the model takes 4"):
        read(folder, {"timm": "test_resnet", "args": {"in_chans": 4}})


def test_a_torchvision_model_prepares_images_as_torchvision_does(folder):
    from torchvision.models import ViT_B_16_Weights

    expected = ViT_B_16_Weights.IMAGENET1K_V1.transforms()(Image.open(folder / "images" / "test" / "disc" / "0.png")).numpy()
    inputs, _ = read(folder, {"torchvision": "vit_b_16"}).test.batch(np.asarray([0]))
    assert np.array_equal(inputs["x"][0], expected)


def test_other_models_take_the_preparation_from_args(folder):
    data = read(folder, size=[20, 24], channels=1, mean=[0.0], std=[1.0], crop_share=1.0)
    inputs, _ = data.test.batch(np.asarray([0]))
    assert inputs["x"].shape == (1, 1, 20, 24) and 0.0 <= inputs["x"].min() < inputs["x"].max() <= 1.0


@pytest.mark.parametrize("augment", ["flip", "crop", "crop-flip"])
def test_augmentation_follows_its_generator_and_not_the_threads(folder, augment):
    def images(seed, workers):
        split = read(folder, size=16, augment=augment, workers=workers).train
        return split.augmented(np.arange(12), np.random.default_rng(seed))[0]["x"]

    assert np.array_equal(images(1, 1), images(1, 4))
    assert not np.array_equal(images(1, 1), images(2, 1))


def test_without_augmentation_training_sees_what_evaluation_sees(folder):
    split = read(folder, size=16).train
    assert np.array_equal(split.augmented(np.arange(3), np.random.default_rng(0))[0]["x"], split.batch(np.arange(3))[0]["x"])


def test_a_flip_is_a_flip(folder):
    split = read(folder, size=16, augment="flip", crop_share=0.875).train
    plain = read(folder, size=16, augment="none").train.batch(np.arange(16))[0]["x"]
    changed = split.augmented(np.arange(16), np.random.default_rng(0))[0]["x"]
    kinds = {
        ("same" if np.array_equal(a, b) else "flipped" if np.array_equal(a[..., ::-1], b) else "other") for a, b in zip(plain, changed)
    }
    assert kinds == {"same", "flipped"}


def test_slices_are_named_by_the_images_path(folder):
    names = [f"{kind}/{i}.png" for kind in SHAPES for i in range(4)]
    rows = ["split,sample,light", *(f"test,{name},{'day' if '1' in name else 'night'}" for name in names)]
    rows += [f"train,{kind}/{i}.png,day" for kind in SHAPES for i in range(10)]
    (folder / "s.csv").write_text("\n".join(rows))
    data = data_source({"imagefolder": "images", "slices": {"csv": "s.csv"}}, folder)
    assert list(data.test.slices()["light"]).count("day") == 2
    assert set(data.select.slices()["light"]) == {"day"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda images: (images / "test").rename(images / "tset"), "there is no folder"),
        (lambda images: (images / "test" / "disc").rename(images / "test" / "dics"), "'dics' is in test/ but not in train/"),
        (lambda images: [path.unlink() for path in (images / "train" / "disc").iterdir()], "'disc' has no image in train/"),
        (lambda images: [path.unlink() for path in (images / "test").rglob("*.png")], "holds no image"),
    ],
)
def test_a_folder_that_is_not_complete_is_refused(folder, change, message):
    change(folder / "images")
    with pytest.raises(InputError, match=message):
        read(folder)


@pytest.mark.parametrize("content", [b"", b"not an image", None])
def test_a_damaged_image_is_named(folder, content):
    path = folder / "images" / "test" / "disc" / "0.png"
    path.write_bytes(path.read_bytes()[:100] if content is None else content)
    with pytest.raises(InputError, match="cannot read the image") as caught:
        read(folder)
    assert caught.value.where == str(path)


@pytest.mark.parametrize(
    "args",
    [
        {"size": 0},
        {"size": [1, 2, 3]},
        {"channels": 2},
        {"std": [0.0, 1.0, 1.0]},
        {"mean": [0.5]},
        {"crop_share": 0},
        {"interpolation": "cubic"},
        {"augment": "blur"},
        {"select_share": 0.0},
        {"shuffle": True},
    ],
)
def test_arguments_that_make_no_sense_are_refused(folder, args):
    with pytest.raises(InputError) as caught:
        read(folder, **args)
    assert caught.value.where and caught.value.where.startswith("data.args")


def test_transparent_and_palette_images_become_rgb(folder):
    path = folder / "images" / "test" / "disc" / "0.png"
    draw("disc", 1).convert("P").save(path)
    draw("disc", 1).convert("RGBA").save(path.with_name("1.png"))
    inputs, _ = read(folder, size=16).test.batch(np.arange(2))
    assert inputs["x"].shape == (2, 3, 16, 16)


def test_preparation_of_an_unknown_model_is_an_input_error():
    with pytest.raises(InputError, match="timm has no model"):
        preparation({"timm": "no_such_model"}, {})
    with pytest.raises(InputError, match="torchvision has no model"):
        preparation({"torchvision": "no_such_model"}, {})
