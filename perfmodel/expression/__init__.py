"""Model strings: parsed into checked expression trees, differentiated, and evaluated with numpy."""

from perfmodel.expression.model_string import CompiledString, ModelString, parse
from perfmodel.expression.tape import compile_nodes
from perfmodel.expression.text import to_text

__all__ = ["CompiledString", "ModelString", "compile_nodes", "parse", "to_text"]
