import numpy as np
import pytest

from tfbbb.tables.number_features import PiecewiseLinearEncoding

EDGES = [[0.0, 1.0, 3.0], [], [-2.0, 2.0]]


def test_codes_are_positions_between_edges():
    values = np.random.default_rng(0).uniform(-4, 4, size=(40, 3)).astype(np.float32)
    values[3, 2] = np.nan
    codes = np.asarray(PiecewiseLinearEncoding(EDGES)(values))
    assert codes.shape == (40, 3)
    for row, code in zip(values, codes, strict=True):
        expected = [
            np.clip((row[0] - 0.0) / 1.0, 0, 1) - 0.5,
            np.clip((row[0] - 1.0) / 2.0, 0, 1) - 0.5,
            0.0 if np.isnan(row[2]) else np.clip((row[2] + 2.0) / 4.0, 0, 1) - 0.5,
        ]
        np.testing.assert_allclose(code, expected, atol=1e-6)


def test_a_linear_function_of_the_code_fits_any_curve_at_the_edges():
    edges = np.linspace(0, 1, 9)
    codes = np.asarray(PiecewiseLinearEncoding([edges])(edges[:, np.newaxis]))
    design = np.column_stack([codes, np.ones(9)])
    curve = np.sin(7 * edges)
    fitted = design @ np.linalg.lstsq(design, curve, rcond=None)[0]
    np.testing.assert_allclose(fitted, curve, atol=1e-5)


def test_it_is_rebuilt_from_its_config():
    layer = PiecewiseLinearEncoding(EDGES)
    again = PiecewiseLinearEncoding.from_config(layer.get_config())
    values = np.array([[0.5, 1.0, -1.0]], np.float32)
    np.testing.assert_array_equal(layer(values), again(values))
    assert layer.compute_output_shape((None, 3)) == (None, 3)


def test_edges_that_do_not_increase_are_refused():
    with pytest.raises(ValueError, match="must increase"):
        PiecewiseLinearEncoding([[0.0, 0.0]])
