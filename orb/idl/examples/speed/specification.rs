//! Specifications similar to typical IDL: a file for each subsystem, which includes the files that it uses;
//! comments, constants, enums, structs, unions, value types, exceptions, typedefs, and interfaces with
//! inheritance.

use std::fmt::Write;

use spandrel_idl::MemoryFiles;

/// Interfaces, with their types, in one file.
const GROUPS: usize = 20;

/// Files of at least `wanted` lines in total, with their number of lines and octets.
pub(super) fn specification(wanted: usize) -> (MemoryFiles, usize, usize) {
    let mut files = MemoryFiles::new();
    let (mut lines, mut octets, mut main) = (0, 0, String::from("// Everything.\n#pragma prefix \"example.org\"\n"));
    for number in 0.. {
        if lines >= wanted {
            break;
        }
        let text = subsystem(number);
        lines += text.lines().count();
        octets += text.len();
        writeln!(main, "#include \"subsystem{number}.idl\"").expect("a string takes all");
        files = files.with(format!("subsystem{number}.idl"), text);
    }
    lines += main.lines().count();
    octets += main.len();
    (files.with("main.idl", main), lines, octets)
}

fn subsystem(number: usize) -> String {
    let mut text = format!(
        "/* Subsystem {number}.\n * What it is for would be said here.\n */\n#ifndef SUBSYSTEM_{number}\n\
         #define SUBSYSTEM_{number}\n"
    );
    if let Some(before) = number.checked_sub(1) {
        text += &format!("#include \"subsystem{before}.idl\"\n");
    }
    text += &format!("#pragma prefix \"example.org\"\n\nmodule Subsystem{number} {{\n  module Types {{\n");
    for group in 0..GROUPS {
        text += &types(group);
    }
    text += "  };\n\n";
    for group in 0..GROUPS {
        text += &interface(number, group);
    }
    text + "};\n\n#endif\n"
}

fn types(group: usize) -> String {
    format!(
        "    const long LIMIT_{group} = (1 << 4) + {group} * 2; // a limit\n\
         \x20   const string TITLE_{group} = \"group \" \"{group}\";\n\n\
         \x20   /** The states of group {group}. */\n\
         \x20   enum State{group} {{\n      idle{group},\n      running{group}, // at work\n      failed{group}\n    }};\n\n\
         \x20   typedef sequence<octet> Blob{group};\n\
         \x20   typedef string<64> Label{group};\n\
         \x20   typedef long Matrix{group}[4][LIMIT_{group}];\n\n\
         \x20   struct Header{group} {{\n\
         \x20     unsigned long long when; ///< in units of 100 ns\n\
         \x20     Label{group} label;\n\
         \x20     State{group} state;\n\
         \x20     boolean urgent;\n\
         \x20   }};\n\
         \x20   typedef sequence<Header{group}, 100> Headers{group};\n\n\
         \x20   // A record with much in it.\n\
         \x20   struct Record{group} {{\n\
         \x20     Header{group} head;\n\
         \x20     Blob{group} body;\n\
         \x20     double values[3], weight;\n\
         \x20     sequence<Record{group}> children;\n\
         \x20     Matrix{group} rotation;\n\
         \x20   }};\n\n\
         \x20   union Choice{group} switch (State{group}) {{\n\
         \x20     case idle{group}: any nothing;\n\
         \x20     case running{group}: case failed{group}: Header{group} head; // one of two\n\
         \x20   }};\n\n\
         \x20   valuetype Node{group} {{\n\
         \x20     public Header{group} head;\n\
         \x20     private Node{group} next;\n\
         \x20     public Choice{group} what;\n\
         \x20     factory create(in Label{group} name);\n\
         \x20   }};\n\n\
         \x20   exception Refused{group} {{ string why; State{group} state; long code; }};\n\n"
    )
}

fn interface(number: usize, group: usize) -> String {
    let base = match (group, number.checked_sub(1)) {
        (0, None) => String::new(),
        (0, Some(before)) => format!(" : Subsystem{before}::Service0"),
        _ => format!(" : Service{}", (group - 1) / 2),
    };
    // Inheritance is shallow, as in practice.
    let base = if group == 0 && number.is_multiple_of(8) { String::new() } else { base };
    format!(
        "  /**\n   * A service of the subsystem.\n   *\n   * More about it.\n   */\n\
         \x20 interface Service{group}{base} {{\n\
         \x20   readonly attribute Types::State{group} state{group}_{number};\n\
         \x20   attribute string name{group}_{number};\n\n\
         \x20   // Takes a record.\n\
         \x20   long submit{group}_{number}(in Types::Record{group} what, out Types::Headers{group} done)\n\
         \x20     raises (Types::Refused{group});\n\
         \x20   Types::Node{group} find{group}_{number}(in string key, inout Types::Matrix{group} place,\n\
         \x20     in boolean exact) raises (Types::Refused{group});\n\
         \x20   oneway void notify{group}_{number}(in Types::Header{group} about, in unsigned short level);\n\
         \x20   Object resolve{group}_{number}(in ::Subsystem{number}::Types::Label{group} label);\n\
         \x20 }};\n\n"
    )
}
