"""A back end of omniidl: one line `scoped-name repository-id` for everything that the main file declares.

    omniidl -p peers/omniorb -bids FILE.idl
"""

from omniidl import idlast


def run(tree, _args):
    seen = set()
    for declaration in tree.declarations():
        show(declaration, seen)


def show(declaration, seen):
    if not declaration.mainFile():
        return
    if isinstance(declaration, idlast.Module):
        line(declaration, seen)
        nested = declaration.definitions()
    elif isinstance(declaration, idlast.Interface):
        line(declaration, seen)
        nested = declaration.contents()
    elif isinstance(declaration, idlast.Enum):
        line(declaration, seen)
        nested = declaration.enumerators()
    elif isinstance(declaration, (idlast.Typedef, idlast.Attribute)):
        nested = declaration.declarators()
    else:
        nested = []
        if isinstance(declaration, idlast.DeclRepoId):
            line(declaration, seen)
    for inner in nested:
        if isinstance(inner, (idlast.Declarator, idlast.Enumerator)):
            line(inner, seen)
        else:
            show(inner, seen)


def line(declaration, seen):
    text = f"{'::'.join(declaration.scopedName())} {declaration.repoId()}"
    if text not in seen:
        seen.add(text)
        print(text)
