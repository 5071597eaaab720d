//! Specifications of one repeated construct each, which reveal slow algorithms.

/// Creates a text of about this number of lines.
type Shape = fn(usize) -> String;

/// The shapes with their names.
pub(super) const ALL: [(&str, Shape); 16] = [
    ("value-chain", value_chain),
    ("value-tower", value_tower),
    ("values-of-one-base", values_of_one_base),
    ("struct-chain", struct_chain),
    ("struct-chain-backwards", struct_chain_backwards),
    ("interface-chain", interface_chain),
    ("union-chain", union_chain),
    ("typedef-chain", typedef_chain),
    ("wide-module", wide_module),
    ("deep-modules", deep_modules),
    ("wide-struct", wide_struct),
    ("interfaces-of-many-bases", interfaces_of_many_bases),
    ("operations", operations),
    ("same-names", same_names),
    ("left-out", left_out),
    ("wide-types", wide_types),
];

fn repeat(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

/// Each value is a member of the one before.
fn value_chain(lines: usize) -> String {
    let forwards = repeat(lines / 2 + 1, |n| format!("valuetype V{n};\n"));
    forwards
        + &repeat(lines / 2, |n| format!("valuetype V{n} {{ public V{} next; public long x; }};\n", n + 1))
        + &format!("valuetype V{} {{ public long x; }};\n", lines / 2)
}

/// Chains of sixteen values, each derived from the one before.
fn value_tower(lines: usize) -> String {
    repeat(lines, |n| match n % 16 {
        0 => format!("valuetype V{n} {{ public long x{n}; }};\n"),
        _ => format!("valuetype V{n} : truncatable V{} {{ public long x{n}; }};\n", n - 1),
    })
}

/// One value from which all others derive, as the interfaces of a system have one base.
fn values_of_one_base(lines: usize) -> String {
    "interface Root {};\nabstract valuetype Any0 {};\n".to_owned()
        + &repeat(lines, |n| format!("valuetype V{n} : Any0 {{ public long x; }};\n"))
}

/// Struct chains of the maximum length, each a member of the next.
fn struct_chain(lines: usize) -> String {
    repeat(lines, |n| match n % 32 {
        0 => format!("struct S{n} {{ long a; }};\n"),
        _ => format!("struct S{n} {{ sequence<S{}> below; double d; }};\n", n - 1),
    })
}

/// Chains of structs declared forward, each with the next as a member: properties of one depend on all later
/// ones.
fn struct_chain_backwards(lines: usize) -> String {
    // The front end permits 256 waiting structs in total.
    repeat(lines.min(780) / 60, |chain| {
        let name = |n: usize| format!("S{chain}_{n}");
        repeat(19, |n| format!("struct {0};\ntypedef sequence<{0}> Q{0};\n", name(n + 1)))
            + &repeat(19, |n| format!("struct {} {{ Q{} next; long x; }};\n", name(n), name(n + 1)))
            + &format!("struct {} {{ double d; any a; }};\n", name(19))
    })
}

/// Chains of interfaces with references to the next, of which the last is local.
fn interface_chain(lines: usize) -> String {
    "native Handle;\n".to_owned()
        + &repeat(lines / 2 + 1, |n| format!("interface I{n};\n"))
        + &repeat(lines / 2, |n| format!("interface I{n} {{ void f(in I{} next); }};\n", n + 1))
        + &format!("interface I{} {{ void f(in Handle h); }};\n", lines / 2)
}

/// Union chains of the maximum length, each a member of the next.
fn union_chain(lines: usize) -> String {
    repeat(lines, |n| match n % 32 {
        0 => format!("union U{n} switch (long) {{ case 1: long a; }};\n"),
        _ => format!("union U{n} switch (boolean) {{ case TRUE: sequence<U{}> u; default: string s; }};\n", n - 1),
    })
}

/// Each type is an alias of the one before.
fn typedef_chain(lines: usize) -> String {
    repeat(lines, |n| match n % 64 {
        0 => format!("typedef sequence<octet> T{n};\n"),
        _ => format!("typedef T{} T{n};\n", n - 1),
    })
}

/// One module with everything.
fn wide_module(lines: usize) -> String {
    let inside = repeat(lines / 5, |n| {
        format!(
            "enum E{n} {{ a{n}, b{n} }};\nconst long C{n} = {n};\nexception X{n} {{ string why; }};\n\
             struct S{n} {{ E{n} e; long l; }};\ninterface I{n} {{ void f(in S{n} s) raises (X{n}); }};\n"
        )
    });
    format!("module Wide {{\n{inside}}};\n")
}

/// Nested modules of the maximum depth, repeatedly.
fn deep_modules(lines: usize) -> String {
    let towers = lines / 60;
    repeat(towers, |tower| {
        let open = repeat(20, |depth| format!("module M{tower}_{depth} {{\n"));
        let use_far = if tower > 0 {
            let names: Vec<String> = (0..20).map(|depth| format!("M{}_{depth}", tower - 1)).collect();
            format!("typedef sequence<::{}::T> Far;\n", names.join("::"))
        } else {
            String::new()
        };
        open + "struct T { long a; };\n" + &use_far + &"};\n".repeat(20)
    })
}

/// Structs with very many members.
fn wide_struct(lines: usize) -> String {
    let structs = 4;
    repeat(structs, |n| {
        format!("struct S{n} {{\n{}}};\n", repeat(lines / structs, |member| format!("long member{member};\n")))
    })
}

/// Interfaces with sixteen bases, which share a base and have an operation each.
fn interfaces_of_many_bases(lines: usize) -> String {
    let root = "interface Root { void ping(); };\n".to_owned();
    let bases = repeat(16, |n| format!("interface B{n} : Root {{ void f{n}(in string a, out long b); }};\n"));
    let all: Vec<String> = (0..16).map(|n| format!("B{n}")).collect();
    root + &bases + &repeat(lines / 20, |n| format!("interface I{n} : {} {{ void g{n}(); }};\n", all.join(", ")))
}

/// One interface with very many operations.
fn operations(lines: usize) -> String {
    let inside = repeat(lines, |n| format!("long f{n}(in string a, inout long b, out sequence_ c);\n"));
    format!("typedef sequence<string> sequence_;\ninterface I {{\n{inside}}};\n")
}

/// Names that become the same in Rust.
fn same_names(lines: usize) -> String {
    let spell = |n: usize| -> String {
        // Rust type names have no underscores.
        (0..16).map(|bit| if n >> bit & 1 == 1 { "_A" } else { "A" }).collect()
    };
    repeat(lines.min(1 << 16), |n| format!("struct x_{}b {{ long a; }};\n", spell(n)))
}

/// A component, and a chain of interfaces with references to it or to the next.
fn left_out(lines: usize) -> String {
    "component C {};\n".to_owned()
        + &repeat(lines / 2 + 1, |n| format!("interface I{n};\n"))
        + &repeat(lines / 2, |n| format!("interface I{n} {{ void f(in I{} next); }};\n", n + 1))
        + &format!("interface I{} {{ void f(in C c); }};\n", lines / 2)
}

/// A few types with very many parts each.
fn wide_types(lines: usize) -> String {
    let each = lines / 5;
    format!("enum E {{\n{}last }};\n", repeat(each, |n| format!("e{n},\n")))
        + &format!("union U switch (long) {{\n{}}};\n", repeat(each, |n| format!("case {n}: long u{n};\n")))
        + &format!("union L switch (long) {{\n{}long a; }};\n", repeat(each, |n| format!("case {n}:\n")))
        + &format!("valuetype V {{\n{}}};\n", repeat(each, |n| format!("public long v{n};\n")))
        + &format!("exception X {{\n{}}};\n", repeat(each, |n| format!("string x{n};\n")))
}
