//! Reads how large functions and their data are from a compiled crate.
//!
//! Every function and every constant is a section of its own. Functions are told apart by their names; a constant belongs to
//! the functions that refer to it, directly or through other constants.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use object::read::archive::ArchiveFile;
use object::{File, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget, SectionIndex, SectionKind};
use serde::{Deserialize, Serialize};

use super::settings::Side;
use crate::LabError;

/// Octets of what an interface is compiled to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// The functions of the stubs, or the skeleton's.
    pub code: u64,
    /// Other functions that they need here: what marshals their types.
    pub helpers: u64,
    /// Constants of both: tables, and texts such as the names of operations.
    pub tables: u64,
    /// Functions and constants that make TypeCodes, which every engine has alike and the paper does not count.
    pub type_codes: u64,
}

impl Sizes {
    /// What counts: without TypeCodes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.code + self.helpers + self.tables
    }
}

/// What a function is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Code,
    Helper,
    TypeCode,
    /// What only makes the compiler keep the rest.
    Scaffold,
}

fn role(name: &str, side: Side) -> Role {
    if name.contains("::scaffold") {
        return Role::Scaffold;
    }
    if name.contains("::Typed>") || name.contains("type_code") || name.contains("_tc::") || name.ends_with("_tc") {
        return Role::TypeCode;
    }
    // The forms of traits that are derived, and what drops values, belong to the types, whichever engine there is.
    if name.contains("core::fmt::") || name.contains("drop_in_place") || name.contains("core::clone::Clone>") {
        return Role::Scaffold;
    }
    let is_own = match side {
        Side::Stub => name.contains("::test_") || name.contains("::stubs::"),
        Side::Skeleton => name.contains("Skeleton") || name.contains("::dispatch"),
    };
    if is_own { Role::Code } else { Role::Helper }
}

/// The sizes of a compiled crate.
///
/// # Errors
/// If the file is no archive of objects, or cannot be read.
pub(super) fn sizes(archive: &Path, side: Side) -> Result<Sizes, LabError> {
    let octets =
        fs::read(archive).map_err(|cause| LabError::Io { action: format!("read {}", archive.display()), cause })?;
    let unreadable = |error: object::Error| LabError::Settings(format!("{} is no archive: {error}", archive.display()));
    let mut sizes = Sizes::default();
    for member in ArchiveFile::parse(octets.as_slice()).map_err(unreadable)?.members() {
        let member = member.map_err(unreadable)?;
        if member.name().ends_with(b".o") {
            // Members lie at even places in an archive; alone, they are aligned.
            let data = member.data(octets.as_slice()).map_err(unreadable)?.to_vec();
            add(&mut sizes, &File::parse(data.as_slice()).map_err(unreadable)?, side);
        }
    }
    Ok(sizes)
}

fn add(sizes: &mut Sizes, file: &File<'_>, side: Side) {
    let mut roles: HashMap<SectionIndex, Role> = HashMap::new();
    for symbol in file.symbols() {
        let (Some(section), Ok(name)) = (symbol.section_index(), symbol.name()) else { continue };
        // Sections have symbols of their own, without a name.
        if name.is_empty() {
            continue;
        }
        if file.section_by_index(section).is_ok_and(|section| section.kind() == SectionKind::Text) {
            roles.entry(section).or_insert_with(|| role(&format!("{:#}", rustc_demangle::demangle(name)), side));
        }
    }
    let mut of_code = HashSet::new();
    let mut of_type_codes = HashSet::new();
    for (&index, &role) in &roles {
        let Ok(section) = file.section_by_index(index) else { continue };
        match role {
            Role::Code => sizes.code += section.size(),
            Role::Helper => sizes.helpers += section.size(),
            Role::TypeCode => sizes.type_codes += section.size(),
            Role::Scaffold => {}
        }
        match role {
            Role::Code | Role::Helper => constants(file, index, &mut of_code),
            Role::TypeCode => constants(file, index, &mut of_type_codes),
            Role::Scaffold => {}
        }
    }
    let octets = |index: &SectionIndex| file.section_by_index(*index).map_or(0, |section| section.size());
    sizes.tables += of_code.iter().map(octets).sum::<u64>();
    sizes.type_codes += of_type_codes.difference(&of_code).map(octets).sum::<u64>();
}

/// The constants that a section refers to, and theirs.
fn constants(file: &File<'_>, from: SectionIndex, found: &mut HashSet<SectionIndex>) {
    let mut open = vec![from];
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
            let kind = file.section_by_index(target).map(|section| section.kind());
            let is_constant = matches!(
                kind,
                Ok(SectionKind::ReadOnlyData
                    | SectionKind::ReadOnlyString
                    | SectionKind::ReadOnlyDataWithRel
                    | SectionKind::Data)
            );
            if is_constant && found.insert(target) {
                open.push(target);
            }
        }
    }
}
