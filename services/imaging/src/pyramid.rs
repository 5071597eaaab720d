//! Zoom levels of an image as tiles in one file.
//!
//! The file has the tiles of all levels, the whole image first, each level row by row. A tile has 256 × 256 pixels, and
//! those beyond the right and lower edge of the image are zero, so that each tile's offset follows from its position.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;

use spandrel::bulk::{FileSource, Source};

use crate::generated::imaging::{Level, Region};

/// The columns and the rows of a tile.
pub(crate) const TILE: u32 = 256;

/// The form of an image's pixels.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PixelFormat {
    pub(crate) samples: u16,
    /// The bits of a sample: 8 or 16.
    pub(crate) bits: u16,
}

impl PixelFormat {
    /// The octets of a pixel.
    pub(crate) fn octets(self) -> u64 {
        u64::from(self.samples) * u64::from(self.bits / 8)
    }
}

/// One zoom level in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TiledLevel {
    pub(crate) columns: u32,
    pub(crate) rows: u32,
    /// The offset of its first tile.
    offset: u64,
    /// The octets of a pixel.
    pixel: u64,
}

impl TiledLevel {
    fn across(&self) -> u32 {
        self.columns.div_ceil(TILE)
    }

    fn down(&self) -> u32 {
        self.rows.div_ceil(TILE)
    }

    fn tile_octets(&self) -> u64 {
        u64::from(TILE) * u64::from(TILE) * self.pixel
    }

    fn tile_offset(&self, across: u32, down: u32) -> u64 {
        self.offset + (u64::from(down) * u64::from(self.across()) + u64::from(across)) * self.tile_octets()
    }

    fn end(&self) -> u64 {
        self.tile_offset(0, self.down())
    }

    /// The columns and rows of a tile inside of the image.
    fn used(&self, across: u32, down: u32) -> (u32, u32) {
        (TILE.min(self.columns - across * TILE), TILE.min(self.rows - down * TILE))
    }
}

/// The zoom levels of an image of this size, the whole image first.
pub(crate) fn levels(columns: u32, rows: u32, format: PixelFormat) -> Vec<TiledLevel> {
    let mut levels: Vec<TiledLevel> = Vec::new();
    let (mut columns, mut rows, mut offset) = (columns, rows, 0);
    loop {
        let level = TiledLevel { columns, rows, offset, pixel: format.octets() };
        offset = level.end();
        levels.push(level);
        if columns <= TILE && rows <= TILE {
            return levels;
        }
        (columns, rows) = (columns.div_ceil(2), rows.div_ceil(2));
    }
}

/// The octets of all levels.
pub(crate) fn octets(levels: &[TiledLevel]) -> u64 {
    levels.last().map_or(0, TiledLevel::end)
}

/// The levels as a description has them.
pub(crate) fn sizes(levels: &[TiledLevel]) -> Vec<Level> {
    levels.iter().map(|level| Level { columns: level.columns, rows: level.rows }).collect()
}

/// A file of tiles that is written.
#[derive(Debug)]
pub(crate) struct TileWriter {
    file: File,
    levels: Vec<TiledLevel>,
    format: PixelFormat,
}

impl TileWriter {
    /// The tiles of an image, all of them black. The file is empty before.
    pub(crate) fn new(file: File, levels: Vec<TiledLevel>, format: PixelFormat) -> io::Result<Self> {
        file.set_len(octets(&levels))?;
        Ok(Self { file, levels, format })
    }

    /// Writes pixels of the whole image: `pixels` has this many columns in each row, and begins at this position.
    pub(crate) fn write(&mut self, (column, row): (u32, u32), columns: u32, pixels: &[u8]) -> io::Result<()> {
        let level = self.levels[0];
        let stride = size(u64::from(columns) * level.pixel);
        let rows = pixels.len() / stride;
        let mut run = Vec::new();
        let end = (column + columns, row + u32::try_from(rows).map_err(io::Error::other)?);
        for down in row / TILE..end.1.div_ceil(TILE) {
            let tile_rows = row.max(down * TILE)..end.1.min((down + 1) * TILE);
            for across in column / TILE..end.0.div_ceil(TILE) {
                let tile_columns = column.max(across * TILE)..end.0.min((across + 1) * TILE);
                let segment = |at: u32| {
                    let begin = size(u64::from(at - row)) * stride;
                    let octets = |at: u32| size(u64::from(at - column) * level.pixel);
                    &pixels[begin + octets(tile_columns.start)..begin + octets(tile_columns.end)]
                };
                let offset = |at: u32| {
                    let pixel = u64::from(at % TILE) * u64::from(TILE) + u64::from(tile_columns.start % TILE);
                    level.tile_offset(across, down) + pixel * level.pixel
                };
                let is_whole = tile_columns.len() as u32 == level.used(across, down).0;
                if is_whole {
                    run.clear();
                    for at in tile_rows.clone() {
                        run.extend_from_slice(segment(at));
                        run.resize(size(u64::from(at + 1 - tile_rows.start) * u64::from(TILE) * level.pixel), 0);
                    }
                    self.write_at(offset(tile_rows.start), &run)?;
                } else {
                    for at in tile_rows.clone() {
                        self.write_at(offset(at), segment(at))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Computes the other levels, each tile from the four of the level before it. `check` is called between tiles.
    pub(crate) fn reduce<E: From<io::Error>>(&mut self, check: impl Fn() -> Result<(), E>) -> Result<File, E> {
        let mut below = vec![0; size(self.levels[0].tile_octets())];
        let mut tile = below.clone();
        for number in 1..self.levels.len() {
            let [source, level] = [self.levels[number - 1], self.levels[number]];
            for (across, down) in (0..level.down()).flat_map(|down| (0..level.across()).map(move |it| (it, down))) {
                check()?;
                tile.fill(0);
                for (right, lower) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
                    let (from_across, from_down) = (across * 2 + right, down * 2 + lower);
                    if from_across < source.across() && from_down < source.down() {
                        self.file.seek(SeekFrom::Start(source.tile_offset(from_across, from_down)))?;
                        self.file.read_exact(&mut below)?;
                        let used = source.used(from_across, from_down);
                        halve(&below, used, &mut tile, (right * TILE / 2, lower * TILE / 2), self.format);
                    }
                }
                self.write_at(level.tile_offset(across, down), &tile)?;
            }
        }
        self.file.sync_all()?;
        Ok(self.file.try_clone()?)
    }

    fn write_at(&mut self, offset: u64, octets: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(octets)
    }
}

/// Writes the means of 2 × 2 pixels of a tile, of which this many columns and rows are used, into another one at a
/// position.
fn halve(from: &[u8], used: (u32, u32), into: &mut [u8], at: (u32, u32), format: PixelFormat) {
    let (pixel, width) = (size(format.octets()), if format.bits == 8 { 1 } else { 2 });
    let sample = |column: u32, row: u32, offset: usize| {
        let begin = (size(u64::from(row)) * TILE as usize + size(u64::from(column))) * pixel + offset;
        if width == 1 { u32::from(from[begin]) } else { u32::from(u16::from_le_bytes([from[begin], from[begin + 1]])) }
    };
    for row in 0..used.1.div_ceil(2) {
        for column in 0..used.0.div_ceil(2) {
            // At an odd edge, the last column or row counts twice.
            let columns = [column * 2, (column * 2 + 1).min(used.0 - 1)];
            let rows = [row * 2, (row * 2 + 1).min(used.1 - 1)];
            let target = (size(u64::from(at.1 + row)) * TILE as usize + size(u64::from(at.0 + column))) * pixel;
            for offset in (0..pixel).step_by(width) {
                let sum: u32 = rows.iter().flat_map(|row| columns.map(|column| sample(column, *row, offset))).sum();
                let mean = (sum + 2) / 4;
                into[target + offset..][..width].copy_from_slice(&mean.to_le_bytes()[..width]);
            }
        }
    }
}

/// The pixels of a region, row by row, from a file of tiles.
#[derive(Debug)]
pub(crate) struct RegionSource {
    tiles: FileSource,
    level: TiledLevel,
    area: Region,
}

impl RegionSource {
    /// A region, which is inside of the level.
    pub(crate) fn new(tiles: FileSource, level: TiledLevel, area: Region) -> Self {
        Self { tiles, level, area }
    }

    fn stride(&self) -> u64 {
        u64::from(self.area.columns) * self.level.pixel
    }

    /// Copies the octets of one tile that are in this range of the region.
    fn copy_tile(&self, (across, down): (u32, u32), range: &Range<u64>, buffer: &mut [u8]) -> io::Result<()> {
        let (area, level, stride) = (&self.area, &self.level, self.stride());
        let rows = (range.start / stride) as u32 + area.row..range.end.div_ceil(stride) as u32 + area.row;
        let rows = rows.start.max(down * TILE)..rows.end.min((down + 1) * TILE);
        let columns = area.column.max(across * TILE)..(area.column + area.columns).min((across + 1) * TILE);
        let row_octets = u64::from(TILE) * level.pixel;
        let mut octets = vec![0; size(rows.len() as u64 * row_octets)];
        let offset = level.tile_offset(across, down) + u64::from(rows.start % TILE) * row_octets;
        read_exact_at(&self.tiles, &mut octets, offset)?;
        for (nth, row) in rows.enumerate() {
            let begin = u64::from(row - area.row) * stride + u64::from(columns.start - area.column) * level.pixel;
            let end = begin + columns.len() as u64 * level.pixel;
            let part = begin.max(range.start)..end.min(range.end);
            if part.start < part.end {
                let in_tile = nth as u64 * row_octets + u64::from(columns.start % TILE) * level.pixel;
                let from = size(in_tile + part.start - begin);
                let length = size(part.end - part.start);
                buffer[size(part.start - range.start)..][..length].copy_from_slice(&octets[from..from + length]);
            }
        }
        Ok(())
    }
}

impl Source for RegionSource {
    fn length(&self) -> Option<u64> {
        Some(self.stride() * u64::from(self.area.rows))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let (stride, area) = (self.stride(), &self.area);
        let end = (stride * u64::from(area.rows)).min(offset + buffer.len() as u64);
        if offset >= end {
            return Ok(0);
        }
        let range = offset..end;
        let first_row = area.row + (offset / stride) as u32;
        let end_row = area.row + end.div_ceil(stride) as u32;
        for down in first_row / TILE..end_row.div_ceil(TILE) {
            for across in area.column / TILE..(area.column + area.columns).div_ceil(TILE) {
                self.copy_tile((across, down), &range, buffer)?;
            }
        }
        Ok(size(end - offset))
    }
}

fn read_exact_at(source: &FileSource, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match source.read_at(buffer, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                buffer = &mut buffer[count..];
                offset += count as u64;
            }
        }
    }
    Ok(())
}

/// A number of octets in memory, which the limits keep small.
fn size(octets: u64) -> usize {
    usize::try_from(octets).unwrap_or(usize::MAX)
}
