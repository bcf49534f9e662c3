"""The text form of a graph: `print_graph` writes it, `parse` reads it back to an equal graph.

    graph @net(%image: f32[N,3,224,224]) -> (%logits: f32[N,1000]) {
      const @conv1.weight : q<i8, @s1 axis=0>[32,3,3,3]
      const @shape : i64[2] = [1, -1]
      %0 = qnn.quantize(%image) : q<u8, 0.0186584:114>[N,3,224,224] from QuantizeLinear q0
      %1 = qnn.conv2d(%0, @conv1.weight) {strides=[2, 2], ...} : q<i32, @s2 axis=1>[N,32,112,112]
      ...
    }
    folded {
      Identity id1
    }
    scales {
      @s1 : f32[32] = [0.013, ...]
    }
    metadata {"opset": 21}

The grammar, where `[ ]` is optional and `..` repeats with commas:

    text      graph folded? scales? metadata?                      the last three in any order
    graph     `graph` @name ( %name: type [= array] .. ) -> ( value: type .. ) { const.. node.. }
    const     `const` @name : type [= array]
    node      [ result .. = ] op ( value .. ) [captures ( value .. )] [types ( type .. )]
              [{ name=attribute .. }] [: type ..] [from word word ..] [float because word string]
    value     %name, @name for a constant, `_` for an operand or result that is absent
    op        qnn.name, onnx.[domain.]op_type<version>, onnx "domain" "op_type"<version>
    type      dtype[<"container">] dims, or quant dims; `_` for a result that is absent
    dims      [2,N,?] with sizes, symbols and unknown sizes; [*] when the rank is not known
    quant     q<storage[<low:high>][:expressed], scale[:zero point] [axis=1] [block=32]>
    scale     a number, a short list, or @name in `scales`; zero points likewise, 0 if left out
    attribute none, true, 2, 0.5, "text", bytes "base64", opaque<what> "base64", quant, type, [..],
              or for a body of If, Loop and Scan: graph folded?
    array     a number, `true`, "text", a flat list of them, or raw "base64" (little-endian);
              with <2,3> in front when the type does not fix its shape

A name or word stands bare when it is made of letters, digits and `_ . $ - /`, else in JSON quotes;
a comment runs from `//` to the end of the line. Fields with their default value are not printed.
The field `out` of an operator is the quant of its first result, and the field `types` of an `onnx`
one the types of its results, unless they are given apart.

Constants of up to `INLINE` elements and all constants of strings are printed with their values.
The arrays of the others are not in the text: `weights_of(graph)` holds them, as
`graph.constants` does, and `parse` takes them. Defaults of inputs and scales are always in it.
"""

from __future__ import annotations

from .arrays import INLINE
from .parser import parse
from .printer import print_graph, weights_of

__all__ = ["INLINE", "parse", "print_graph", "weights_of"]
