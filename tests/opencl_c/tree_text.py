"""Writes syntax trees as short text, to be compared in tests."""

from __future__ import annotations

from perfmodel.opencl_c import syntax as sx


def shown(node: sx.Expression | sx.InitializerList | None) -> str:
    """Returns an expression with every conversion visible: ``float4(i)`` is i converted."""
    match node:
        case None:
            return "-"
        case sx.Constant():
            return f"{node.value}:{node.type}"
        case sx.Name():
            return node.variable.name
        case sx.Dereference(pointer=sx.Shift() as shift):
            return f"{shown(shift.pointer)}[{shown(shift.index)}]"
        case sx.Dereference():
            return f"*{shown(node.pointer)}"
        case sx.Shift():
            return f"({shown(node.pointer)} + {shown(node.index)})"
        case sx.PointerDifference():
            return f"({shown(node.left)} -p {shown(node.right)})"
        case sx.Member():
            return f"{shown(node.record)}.{node.name}"
        case sx.Swizzle():
            return f"{shown(node.vector)}.<{' '.join(map(str, node.components))}>"
        case sx.AddressOf():
            return f"&{shown(node.target)}"
        case sx.Decay():
            return f"decay({shown(node.array)})"
        case sx.Unary():
            return f"({node.operator}{shown(node.operand)}):{node.type}"
        case sx.Binary():
            return f"({shown(node.left)} {node.operator} {shown(node.right)}):{node.type}"
        case sx.Logical():
            return f"({shown(node.left)} {node.operator} {shown(node.right)}):{node.type}"
        case sx.Conditional():
            return f"({shown(node.condition)} ? {shown(node.then)} : {shown(node.otherwise)}):{node.type}"
        case sx.Convert():
            return f"{str(node.type).replace(' ', '_')}({shown(node.operand)})"
        case sx.VectorLiteral():
            return f"{node.type}{{{', '.join(map(shown, node.parts))}}}"
        case sx.Call():
            return f"{node.function.name}({', '.join(map(shown, node.arguments))}):{node.type}"
        case sx.BuiltinCall():
            return f"@{node.name}({', '.join(map(shown, node.arguments))}):{node.type}"
        case sx.Assign():
            return f"{shown(node.target)} = {shown(node.value)}"
        case sx.CompoundAssign():
            return f"{shown(node.target)} {node.operator}= {shown(node.value)} in {node.computed}"
        case sx.Increment():
            sign = "++" if node.step > 0 else "--"
            return f"{shown(node.target)}{sign}" if node.is_postfix else f"{sign}{shown(node.target)}"
        case sx.Comma():
            return f"({shown(node.first)}, {shown(node.second)})"
        case sx.CompoundLiteral():
            return f"({node.type}){shown(node.initial)}"
        case sx.Block():
            return f"({' '.join(map(outline, node.statements))} {shown(node.value)})"
        case sx.InitializerList():
            return f"{{{', '.join(f'{offset}: {shown(leaf)}' for offset, leaf in node.leaves)}}}"


def outline(statement: sx.Statement) -> str:
    """Returns a statement's kinds, one inside the other, with its expressions."""
    match statement:
        case sx.Compound():
            return f"{{{' '.join(map(outline, statement.statements))}}}"
        case sx.Declare():
            variable = statement.variable
            initial = "" if variable.initial is None else f" = {shown(variable.initial)}"
            return f"{variable.space} {variable.type} {variable.name}{initial};"
        case sx.Evaluate():
            return f"{shown(statement.expression)};"
        case sx.If():
            otherwise = "" if statement.otherwise is None else f" else {outline(statement.otherwise)}"
            return f"if {shown(statement.condition)} {outline(statement.then)}{otherwise}"
        case sx.Loop():
            first = "" if statement.initial is None else outline(statement.initial)
            unroll = "" if statement.unroll is None else f"[{statement.unroll}]"
            kind = "do" if statement.is_do else "for"
            header = f"{first} | {shown(statement.condition)} | {shown(statement.step)}"
            return f"{kind}{unroll} ({header}) {outline(statement.body)}"
        case sx.Switch():
            cases = [f"{list(case.values)}: {' '.join(map(outline, case.body))}".strip() for case in statement.cases]
            return f"switch {shown(statement.value)} {{{' '.join(cases)}}}"
        case sx.Break():
            return "break;"
        case sx.Continue():
            return "continue;"
        case sx.Label():
            return f"{statement.name}:"
        case sx.Goto():
            return f"goto {statement.name};"
        case sx.Return():
            return f"return {shown(statement.value)};"
