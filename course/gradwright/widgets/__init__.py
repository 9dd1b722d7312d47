"""The widgets of the course: interactive in a notebook, and a static picture everywhere else (see `frame`)."""

from __future__ import annotations

from importlib import import_module

_WIDGETS = {
    "activation_statistics": ("activations", "ActivationStatistics"),
    "broadcasting_explorer": ("broadcasting", "BroadcastingExplorer"),
    "flow_monitor": ("monitor", "FlowMonitor"),
    "gradient_flow": ("flow", "GradientFlow"),
    "graph_viewer": ("viewer", "GraphViewer"),
    "jacobian_view": ("jacobian", "JacobianView"),
    "learning_rate_curves": ("rates", "LearningRateCurves"),
    "number_line": ("numberline", "NumberLine"),
    "optimizer_paths": ("paths", "OptimizerPaths"),
    "softmax_temperature": ("temperature", "SoftmaxTemperature"),
    "stride_explorer": ("strides", "StrideExplorer"),
    "visit_counter": ("visits", "VisitCounter"),
}

__all__ = [
    "activation_statistics",
    "broadcasting_explorer",
    "flow_monitor",
    "gradient_flow",
    "graph_viewer",
    "jacobian_view",
    "learning_rate_curves",
    "number_line",
    "optimizer_paths",
    "softmax_temperature",
    "stride_explorer",
    "visit_counter",
]


def __getattr__(name: str) -> object:
    """A widget on first use: NumPy alone is loaded for one, Matplotlib for a picture, ipywidgets for the screen."""
    if name not in _WIDGETS:
        raise AttributeError(f"gradwright.widgets has no {name!r}: it has {', '.join(_WIDGETS)}.")
    module, kind = _WIDGETS[name]
    return getattr(import_module(f"{__name__}.{module}"), kind)


def __dir__() -> list[str]:
    return sorted(_WIDGETS)
