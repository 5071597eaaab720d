//! The check that a shared library in the format ELF is complete, before the system's loader maps it.
//!
//! The loader maps the segments of a library as its program headers say. It does not compare them with the file's length: a
//! page beyond the end of the file raises SIGBUS when the loader relocates it, which ends the process. A truncated file is
//! refused here, and so is one in which the part that linkers write last, the section headers, is still zero. Libraries that
//! the library itself needs are found and mapped by the loader, without this check.
//!
//! The layouts are those of the System V ABI (generic part, chapters "Object Files" and "Program Loading").

use std::ops::Range;

const MAGIC: &[u8] = b"\x7fELF";
const IS_64: bool = cfg!(target_pointer_width = "64");
/// The size of an address and of an offset.
const WORD: usize = if IS_64 { 8 } else { 4 };
/// `e_ident[EI_CLASS]` and `e_ident[EI_DATA]` of this program.
const IDENTITY: [u8; 2] = [if IS_64 { 2 } else { 1 }, if cfg!(target_endian = "little") { 1 } else { 2 }];
const SHARED_OBJECT: u16 = 3;
const SEGMENT_LOAD: u32 = 1;
const SEGMENT_DYNAMIC: u32 = 2;
const SECTION_NULL: u32 = 0;
const SECTION_NO_BITS: u32 = 8;

/// Returns why the octets of a file are no complete shared library.
pub(super) fn check_complete(file: &[u8]) -> Result<(), String> {
    if !file.starts_with(MAGIC) {
        return Err("it is no shared library: its first octets are not those of the format ELF".to_owned());
    }
    let header = Header::read(file).ok_or_else(|| truncated("ELF header"))?;
    if header.identity != IDENTITY {
        return Err("it was built for another machine than this program".to_owned());
    }
    if header.kind != SHARED_OBJECT {
        return Err(format!("it is no shared library: its ELF type is {}", header.kind));
    }
    let segments = header.segments.entries(file).ok_or_else(|| truncated("program headers"))?;
    let segments: Option<Vec<Segment>> = segments.map(Segment::read).collect();
    let segments = segments.ok_or_else(|| truncated("program headers"))?;
    for segment in &segments {
        octets(file, segment.offset, segment.size).ok_or_else(|| truncated("segments"))?;
    }
    let sections = header.sections.entries(file).ok_or_else(|| truncated("section headers"))?;
    let sections: Option<Vec<Section>> = sections.map(Section::read).collect();
    let sections = sections.ok_or_else(|| truncated("section headers"))?;
    if sections.last().is_some_and(|section| section.kind == SECTION_NULL) {
        return Err("it is not complete: its last section header is empty".to_owned());
    }
    for section in sections.iter().filter(|section| ![SECTION_NULL, SECTION_NO_BITS].contains(&section.kind)) {
        octets(file, section.offset, section.size).ok_or_else(|| truncated("sections"))?;
    }
    check_dynamic(file, &segments)
}

fn truncated(part: &str) -> String {
    format!("it is not complete: the file ends before its {part} do")
}

/// Compares the table by which the loader finds symbols and relocations with the segments.
fn check_dynamic(file: &[u8], segments: &[Segment]) -> Result<(), String> {
    const END: u64 = 0;
    /// The tags `DT_STRTAB` and `DT_SYMTAB`.
    const TABLES: [u64; 2] = [5, 6];
    let dynamic = segments.iter().find(|segment| segment.kind == SEGMENT_DYNAMIC);
    let dynamic = dynamic.ok_or("it is no shared library: it has no dynamic section")?;
    let is_mapped = |address: u64, size: u64| {
        segments.iter().any(|segment| segment.kind == SEGMENT_LOAD && segment.contains(address, size))
    };
    let misplaced = || "it is not complete: its dynamic section is outside of its segments".to_owned();
    if !is_mapped(dynamic.address, dynamic.size) {
        return Err(misplaced());
    }
    let table = octets(file, dynamic.offset, dynamic.size).ok_or_else(misplaced)?;
    let entries = table.chunks_exact(2 * WORD).filter_map(|entry| Some((word(entry, 0)?, word(entry, WORD)?)));
    let entries: Vec<(u64, u64)> = entries.take_while(|(tag, _)| *tag != END).collect();
    // Without an end the loader reads on.
    if entries.len() == table.len() / (2 * WORD) {
        return Err("it is not complete: its dynamic section has no end".to_owned());
    }
    for tag in TABLES {
        let address = entries.iter().find(|(other, _)| *other == tag).map(|(_, address)| *address);
        if !address.is_some_and(|address| is_mapped(address, 1)) {
            return Err("it is not complete: its dynamic section names no table of symbols".to_owned());
        }
    }
    Ok(())
}

/// The header of the file, as far as it counts here.
struct Header {
    identity: [u8; 2],
    kind: u16,
    segments: Table,
    sections: Table,
}

impl Header {
    fn read(file: &[u8]) -> Option<Self> {
        // Behind `e_ident` (16 octets), `e_type`, `e_machine` and `e_version`, three words: `e_entry`, `e_phoff`, `e_shoff`.
        let offsets = 24 + WORD;
        // Behind `e_flags` and `e_ehsize`.
        let counts = offsets + 2 * WORD + 6;
        let count = |index: usize| half(file, counts + 2 * index);
        Some(Self {
            identity: file.get(4..6)?.try_into().ok()?,
            kind: half(file, 16)?,
            segments: Table { offset: word(file, offsets)?, entry: count(0)?, number: count(1)? },
            sections: Table { offset: word(file, offsets + WORD)?, entry: count(2)?, number: count(3)? },
        })
    }
}

/// A table of headers. (A library with 65,280 sections and more has their number elsewhere, and 0 here.)
struct Table {
    offset: u64,
    entry: u16,
    number: u16,
}

impl Table {
    fn entries<'a>(&self, file: &'a [u8]) -> Option<impl Iterator<Item = &'a [u8]> + use<'a>> {
        let entry = usize::from(self.entry);
        let number = usize::from(self.number);
        let table = if number == 0 { &[] } else { octets(file, self.offset, (entry * number) as u64)? };
        Some(table.chunks_exact(entry.max(1)))
    }
}

struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    /// In the file; the memory may be larger.
    size: u64,
}

impl Segment {
    fn read(entry: &[u8]) -> Option<Self> {
        // `p_flags` is the second field of 64-bit headers only.
        let first = if IS_64 { 8 } else { 4 };
        let field = |index: usize| word(entry, first + index * WORD);
        Some(Self { kind: quarter(entry, 0)?, offset: field(0)?, address: field(1)?, size: field(3)? })
    }

    fn contains(&self, address: u64, size: u64) -> bool {
        let Some(from) = address.checked_sub(self.address) else { return false };
        from.checked_add(size).is_some_and(|end| end <= self.size)
    }
}

struct Section {
    kind: u32,
    offset: u64,
    size: u64,
}

impl Section {
    fn read(entry: &[u8]) -> Option<Self> {
        // Behind `sh_name` and `sh_type`: `sh_flags`, `sh_addr`, `sh_offset`, `sh_size`.
        let field = |index: usize| word(entry, 8 + index * WORD);
        Some(Self { kind: quarter(entry, 4)?, offset: field(2)?, size: field(3)? })
    }
}

fn octets(file: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    let range: Range<usize> = usize::try_from(offset).ok()?..usize::try_from(offset.checked_add(size)?).ok()?;
    file.get(range)
}

fn half(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(octets.get(at..at + 2)?.try_into().ok()?))
}

fn quarter(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(octets.get(at..at + 4)?.try_into().ok()?))
}

fn word(octets: &[u8], at: usize) -> Option<u64> {
    let octets = octets.get(at..at + WORD)?;
    match octets.try_into() {
        Ok(octets) => Some(u64::from_ne_bytes(octets)),
        Err(_) => quarter(octets, 0).map(u64::from),
    }
}
