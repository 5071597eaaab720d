//! The sizes of functions and their data in a compiled crate.
//!
//! Every function and every constant is a section of its own. Names identify the roots: stubs and skeletons.
//! Everything reachable from a root counts, whatever its name, and nothing else does: a reference type has
//! methods that a stub does not need, and types have forms that are never sent.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use object::read::archive::ArchiveFile;
use object::{File, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget, SectionIndex, SectionKind};

use super::settings::Side;
use super::sizes::Sizes;
use crate::LabError;

/// The role of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A stub or a skeleton: functions reachable from here count.
    Root,
    /// Counts if it is reached.
    Other,
    TypeCode,
    /// Only makes the compiler keep the rest.
    Scaffold,
}

/// The functions from which others are reached.
#[derive(Clone, Copy, Debug)]
pub(super) enum Roots<'n> {
    /// All stubs, or all skeletons.
    Side(Side),
    /// Functions whose path ends so.
    Function(&'n str),
}

/// Methods of every reference type that send no request.
const NO_OPERATIONS: [&str; 3] = ["narrow", "unchecked_narrow", "as_object"];

/// The role of a function with these names: equal functions are compiled into one.
fn role_of_any(names: &[String], roots: Roots<'_>, references: &HashSet<&str>) -> Role {
    let has = |wanted: Role| names.iter().any(|name| role(name, roots, references) == wanted);
    [Role::Root, Role::Other, Role::TypeCode].into_iter().find(|&wanted| has(wanted)).unwrap_or(Role::Scaffold)
}

fn role(name: &str, roots: Roots<'_>, references: &HashSet<&str>) -> Role {
    if name.contains("::scaffold") {
        return Role::Scaffold;
    }
    if name.contains("::Typed>") || name.contains("type_code") || name.contains("_tc::") || name.ends_with("_tc") {
        return Role::TypeCode;
    }
    let is_root = match roots {
        Roots::Function(path) => name.ends_with(path),
        Roots::Side(Side::Stub) => {
            method(name).is_some_and(|(of, it)| references.contains(of) && !NO_OPERATIONS.contains(&it))
        }
        Roots::Side(Side::Skeleton) => name.split_once("Skeleton<").is_some_and(|(_, rest)| {
            let rest = rest.rsplit_once("::Servant>::").map(|(_, method)| method);
            matches!(rest, Some("dispatch" | "is_a" | "operations" | "repository_id" | "upcall"))
        }),
    };
    if is_root { Role::Root } else { Role::Other }
}

/// The type and the name of a function like `<crate::Type>::name`.
fn method(name: &str) -> Option<(&str, &str)> {
    let (of, method) = name.strip_prefix('<')?.rsplit_once(">::")?;
    let is_plain = !of.contains(['<', ' ']) && !method.contains(':');
    is_plain.then_some((of, method))
}

/// The sizes of a compiled crate.
///
/// # Errors
/// If the file is not an archive of objects, or cannot be read.
pub(super) fn sizes(archive: &Path, roots: Roots<'_>) -> Result<Sizes, LabError> {
    let octets =
        fs::read(archive).map_err(|cause| LabError::Io { action: format!("read {}", archive.display()), cause })?;
    let unreadable = |error: object::Error| LabError::Settings(format!("{} is no archive: {error}", archive.display()));
    let mut sizes = Sizes::default();
    for member in ArchiveFile::parse(octets.as_slice()).map_err(unreadable)?.members() {
        let member = member.map_err(unreadable)?;
        if member.name().ends_with(b".o") {
            // Members start at even offsets in an archive; copied out, they are aligned.
            let data = member.data(octets.as_slice()).map_err(unreadable)?.to_vec();
            add(&mut sizes, &File::parse(data.as_slice()).map_err(unreadable)?, roots);
        }
    }
    Ok(sizes)
}

fn add(sizes: &mut Sizes, file: &File<'_>, roots: Roots<'_>) {
    let names = functions(file);
    let references: HashSet<&str> = names
        .values()
        .flatten()
        .filter_map(|name| method(name))
        .filter_map(|(of, method)| (method == "unchecked_narrow").then_some(of))
        .collect();
    let roles: HashMap<SectionIndex, Role> =
        names.iter().map(|(&index, names)| (index, role_of_any(names, roots, &references))).collect();
    let with = |wanted: Role| roles.iter().filter(move |&(_, &role)| role == wanted).map(|(&index, _)| index);
    // TypeCodes that describe a type are not part of its marshaling.
    let counts = |index| !matches!(roles.get(&index), Some(Role::TypeCode | Role::Scaffold));
    let counted = reached(file, with(Role::Root), counts);
    for &index in &counted {
        let octets = file.section_by_index(index).map_or(0, |section| section.size());
        match roles.get(&index) {
            Some(Role::Root) => sizes.code += octets,
            Some(_) => sizes.helpers += octets,
            None => sizes.tables += octets,
        }
    }
    let is_of_type_codes = |index| roles.get(&index).is_none_or(|role| *role == Role::TypeCode);
    let type_codes = reached(file, with(Role::TypeCode), is_of_type_codes);
    let octets = |index: &SectionIndex| file.section_by_index(*index).map_or(0, |section| section.size());
    sizes.type_codes += type_codes.difference(&counted).map(octets).sum::<u64>();
}

/// The functions, by their sections.
fn functions(file: &File<'_>) -> HashMap<SectionIndex, Vec<String>> {
    let mut names: HashMap<SectionIndex, Vec<String>> = HashMap::new();
    for symbol in file.symbols() {
        let (Some(section), Ok(name)) = (symbol.section_index(), symbol.name()) else { continue };
        // Sections have their own symbols, without a name.
        let is_text = file.section_by_index(section).is_ok_and(|section| section.kind() == SectionKind::Text);
        if is_text && !name.is_empty() {
            names.entry(section).or_default().push(format!("{:#}", rustc_demangle::demangle(name)));
        }
    }
    names
}

/// The functions and constants reachable from some: themselves, their references, and so on, as far as it
/// `counts`.
fn reached(
    file: &File<'_>,
    from: impl Iterator<Item = SectionIndex>,
    counts: impl Fn(SectionIndex) -> bool,
) -> HashSet<SectionIndex> {
    let mut open: Vec<SectionIndex> = from.collect();
    let mut reached: HashSet<SectionIndex> = open.iter().copied().collect();
    while let Some(index) = open.pop() {
        let Ok(section) = file.section_by_index(index) else { continue };
        for (_, relocation) in section.relocations() {
            let target = match relocation.target() {
                RelocationTarget::Symbol(symbol) => {
                    file.symbol_by_index(symbol).ok().and_then(|symbol| symbol.section_index())
                }
                RelocationTarget::Section(section) => Some(section),
                _ => None,
            };
            let Some(target) = target else { continue };
            let is_kept = file.section_by_index(target).is_ok_and(|section| is_code_or_constant(section.kind()));
            if is_kept && counts(target) && reached.insert(target) {
                open.push(target);
            }
        }
    }
    reached
}

fn is_code_or_constant(kind: SectionKind) -> bool {
    matches!(
        kind,
        SectionKind::Text
            | SectionKind::ReadOnlyData
            | SectionKind::ReadOnlyString
            | SectionKind::ReadOnlyDataWithRel
            | SectionKind::Data
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_are_the_operations_of_references_and_skeletons_the_servants_that_wrap_servants() {
        let references = HashSet::from(["it::bank::Account"]);
        let of = |name: &str, side| role(name, Roots::Side(side), &references);
        assert_eq!(of("<it::bank::Account>::deposit", Side::Stub), Role::Root);
        assert_eq!(of("<it::bank::Account>::deposit::{closure#0}", Side::Stub), Role::Other);
        assert_eq!(of("<it::bank::Account>::narrow", Side::Stub), Role::Other);
        assert_eq!(of("<it::bank::Choice>::discriminator", Side::Stub), Role::Other);
        let skeleton = "<it::bank::AccountSkeleton<alloc::sync::Arc<dyn it::bank::AccountServant>> as spandrel_orb::servant::Servant>::dispatch";
        assert_eq!(of(skeleton, Side::Skeleton), Role::Root);
        assert_eq!(of(&format!("{skeleton}::{{closure#0}}"), Side::Skeleton), Role::Other);
        assert_eq!(of("<it::bank::Entry as spandrel_cdr::value::Decode>::decode", Side::Skeleton), Role::Other);
        let named = |name: &str| role(name, Roots::Function("::marshaling::write"), &references);
        assert_eq!(named("it::marshaling::write"), Role::Root);
        assert_eq!(named("it::marshaling::write_all"), Role::Other);
        assert_eq!(of("<it::bank::Entry as spandrel_cdr::Typed>::type_code", Side::Stub), Role::TypeCode);
    }
}
