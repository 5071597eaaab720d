"""A back end of omniidl: the lines of `spandrel idl --dump text`, for the main file and all included files.

    omniidl -p peers/omniorb -bmodel FILE.idl

The comparison (tools/xtask/src/idl.rs) removes from both sides the facts that omniidl 4.2 does not expose.
"""

from omniidl import idlast, idltype

# Declared by omniidl itself, and types without a definition for us.
BUILT_IN = {"CORBA::Object": "Object", "CORBA::ValueBase": "ValueBase", "CORBA::AbstractBase": "AbstractBase",
            "CORBA::TypeCode": "TypeCode"}

BASIC = {idltype.tk_void: "void", idltype.tk_short: "short", idltype.tk_long: "long",
         idltype.tk_ushort: "unsigned short", idltype.tk_ulong: "unsigned long", idltype.tk_float: "float",
         idltype.tk_double: "double", idltype.tk_boolean: "boolean", idltype.tk_char: "char",
         idltype.tk_octet: "octet", idltype.tk_any: "any", idltype.tk_TypeCode: "TypeCode",
         idltype.tk_longlong: "long long", idltype.tk_ulonglong: "unsigned long long",
         idltype.tk_longdouble: "long double", idltype.tk_wchar: "wchar"}


def run(tree, _args):
    modules = set()
    for declaration in tree.declarations():
        for line in lines(declaration):
            # A reopened module is the same module.
            if line.startswith("module ") and line.split()[1] in modules:
                continue
            modules.add(line.split()[1])
            print(line)


def lines(declaration):
    """The lines of a declaration and of the nested ones."""
    if getattr(declaration, "builtIn", lambda: False)():
        return
    kind = type(declaration).__name__
    yield from globals()["of_" + kind](declaration)


def head(keyword, declaration, rest=""):
    return f"{keyword} {name(declaration)} {declaration.repoId()}{rest}"


def name(declaration):
    return "::".join(declaration.scopedName())


def of_Module(module):
    yield head("module", module)
    for inner in module.definitions():
        yield from lines(inner)


def of_Interface(interface):
    words = " abstract" * interface.abstract() + " local" * interface.local()
    yield head("interface", interface, words + names(" : ", interface.inherits(), ""))
    for inner in interface.contents():
        yield from lines(inner)


def of_Forward(forward):
    if not isinstance(forward.fullDecl(), idlast.Interface):
        yield head("interface", forward, " abstract" * forward.abstract() + " local" * forward.local() + " forward")


def of_Const(const):
    kind = "fixed" if isinstance(const.constType(), idltype.Fixed) else of_type(const.constType())
    text = value(const.constKind(), const.value())
    if const.constKind() == idltype.tk_fixed:
        text = decimal(text, const.constType().unalias())
    yield head("const", const, f" {kind} = {text}")


def of_Typedef(typedef):
    yield from constructed(typedef, typedef.aliasType())
    for declarator in typedef.declarators():
        yield head("typedef", declarator, " " + declared(typedef.aliasType(), declarator))


def of_Struct(struct):
    yield from of_members("struct", struct)


def of_Exception(exception):
    yield from of_members("exception", exception)


def of_members(keyword, struct):
    yield head(keyword, struct, " {" + members(struct.members()) + " }")
    for member in struct.members():
        yield from constructed(member, member.memberType())


def of_StructForward(_):
    return ()


def of_Union(union):
    text = ""
    for case in union.cases():
        for label in case.labels():
            text += " default:" if label.default() else f" case {value(label.labelKind(), label.value())}:"
        text += f" {declared(case.caseType(), case.declarator())} {case.declarator().identifier()};"
    yield head("union", union, f" switch {of_type(union.switchType())} {{{text} }}")
    yield from constructed(union, union.switchType())
    for case in union.cases():
        yield from constructed(case, case.caseType())


def of_UnionForward(_):
    return ()


def of_Enum(enum):
    yield head("enum", enum)
    for ordinal, enumerator in enumerate(enum.enumerators()):
        yield head("enumerator", enumerator, f" {ordinal}")


def of_Operation(operation):
    text = " oneway" * operation.oneway() + f" {of_type(operation.returnType())}"
    text += parameters(operation.parameters()) + names(" raises (", operation.raises(), ")")
    if operation.contexts():
        text += " context (" + ", ".join(quoted(map(ord, it), '"') for it in operation.contexts()) + ")"
    yield head("operation", operation, text)


def of_Attribute(attribute):
    for declarator in attribute.declarators():
        text = " readonly" * attribute.readonly() + f" {of_type(attribute.attrType())}"
        yield head("attribute", declarator, text)


def of_Native(native):
    yield head("native", native)


def of_ValueForward(forward):
    if not isinstance(forward.fullDecl(), (idlast.Value, idlast.ValueAbs)):
        yield head("valuetype", forward, " abstract" * forward.abstract() + " forward { }")


def of_ValueBox(box):
    yield head("valuetype", box, f" = {of_type(box.boxedType())}")
    yield from constructed(box, box.boxedType())


def of_ValueAbs(abstract):
    text = " abstract" + names(" : ", abstract.inherits(), "") + names(" supports ", abstract.supports(), "") + " { }"
    yield head("valuetype", abstract, text)
    for inner in abstract.contents():
        yield from lines(inner)


def of_Value(body):
    text = " custom" * body.custom() + names(" : truncatable " if body.truncatable() else " : ", body.inherits(), "")
    text += names(" supports ", body.supports(), "") + " {"
    for state in body.statemembers():
        # 0 is public in omniidl's tree.
        text += members([state], " private" if state.memberAccess() else " public")
    for factory in body.factories():
        raises = names(" raises (", factory.raises(), ")")
        text += f" factory {factory.identifier()}{parameters(factory.parameters())}{raises};"
    yield head("valuetype", body, text + " }")
    for inner in body.contents():
        if isinstance(inner, idlast.StateMember):
            yield from constructed(inner, inner.memberType())
        elif not isinstance(inner, idlast.Factory):
            yield from lines(inner)


def constructed(holder, its_type):
    """The declaration in the place of a type."""
    if holder.constrType():
        yield from lines(its_type.decl())


def members(all_members, word=""):
    text = ""
    for member in all_members:
        for declarator in member.declarators():
            text += f"{word} {declared(member.memberType(), declarator)} {declarator.identifier()};"
    return text


def parameters(all_parameters):
    return " (" + ", ".join(f"{it.dirtext()} {of_type(it.paramType())} {it.identifier()}" for it in all_parameters) + ")"


def names(before, declarations, after):
    # A base may be given by a typedef of it.
    text = ", ".join(name(it.alias().aliasType().unalias().decl() if isinstance(it, idlast.Declarator) else it)
                     for it in declarations)
    return before + text + after if text else ""


def declared(its_type, declarator):
    return of_type(its_type) + "".join(f"[{size}]" for size in declarator.sizes())


def of_type(its_type):
    if isinstance(its_type, idltype.String):
        return "string" + bound(its_type)
    if isinstance(its_type, idltype.WString):
        return "wstring" + bound(its_type)
    if isinstance(its_type, idltype.Sequence):
        limit = f", {its_type.bound()}" if its_type.bound() else ""
        return f"sequence<{of_type(its_type.seqType())}{limit}>"
    if isinstance(its_type, idltype.Fixed):
        return f"fixed<{its_type.digits()}, {its_type.scale()}>"
    if isinstance(its_type, idltype.Declared):
        full = "::".join(its_type.scopedName())
        return BUILT_IN.get(full, full)
    return BASIC[its_type.kind()]


def bound(text):
    return f"<{text.bound()}>" if text.bound() else ""


def value(kind, it):
    if kind == idltype.tk_boolean:
        return "TRUE" if it else "FALSE"
    if kind == idltype.tk_char:
        return quoted([ord(it)], "'")
    if kind == idltype.tk_wchar:
        return "L" + quoted([it], "'")
    if kind == idltype.tk_string:
        return quoted(map(ord, it), '"')
    if kind == idltype.tk_wstring:
        # It holds UTF-16.
        octets = b"".join(code.to_bytes(2, "big") for code in it)
        return "L" + quoted(map(ord, octets.decode("utf-16-be")), '"')
    if kind in (idltype.tk_float, idltype.tk_double, idltype.tk_longdouble):
        # As Rust writes them.
        return repr(it).replace("e+", "e").replace("e-0", "e-")
    if kind == idltype.tk_enum:
        return name(it)
    if kind == idltype.tk_fixed:
        return f"{it}d"
    return str(it)


def decimal(text, its_type):
    """A value with all fractional digits of its type; only `fixed` has those of the value."""
    whole, _, fraction = text.removesuffix("d").partition(".")
    fraction = fraction.ljust(its_type.scale() if its_type.digits() > 0 else 0, "0")
    return f"{whole}.{fraction}d" if fraction else f"{whole}d"


def quoted(codes, quote):
    plain = (chr(it) if 32 <= it < 127 and chr(it) not in quote + "\\" else f"\\u{{{it:x}}}" for it in codes)
    return quote + "".join(plain) + quote
