"""Dataflow graphs as data: the records, their text form, a verifier."""

from limelight.graph.dot import to_dot as to_dot
from limelight.graph.ir import FunctionLike as FunctionLike
from limelight.graph.ir import Graph as Graph
from limelight.graph.ir import Literal as Literal
from limelight.graph.ir import Node as Node
from limelight.graph.ir import Value as Value
from limelight.graph.parser import parse as parse
from limelight.graph.printer import show as show
from limelight.graph.verify import verify as verify
