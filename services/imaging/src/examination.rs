//! TIFF files of others: their form is examined, and their pixels become tiles, in bounded memory.

use std::fs::File;
use std::io::{self, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use tiff::decoder::{ChunkType, Decoder, DecodingResult, Limits as DecoderLimits};
use tiff::tags::Tag;
use tiff::{ColorType, TiffError};

use crate::limits::Limits;
use crate::pyramid::{PixelFormat, TileWriter, TiledLevel, levels, octets};

/// The octets of one tag's values in a file, such as the offsets of its strips.
const MAX_TAG: usize = 1 << 20;

/// The reason why a file is no image of the store.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RefusedFile {
    #[error("it is no TIFF file that can be read: {0}")]
    Format(#[from] TiffError),
    #[error("{0}")]
    Content(String),
    #[error("the image cannot be written")]
    Storage(#[from] io::Error),
}

impl From<RefusedFile> for io::Error {
    fn from(refused: RefusedFile) -> Self {
        match refused {
            RefusedFile::Storage(error) => error,
            refused => Self::new(io::ErrorKind::InvalidData, refused.to_string()),
        }
    }
}

fn refuse<T>(reason: impl Into<String>) -> Result<T, RefusedFile> {
    Err(RefusedFile::Content(reason.into()))
}

/// A TIFF file whose form is accepted: its first image.
pub(crate) struct ExaminedFile {
    decoder: Decoder<BufReader<File>>,
    pub(crate) format: PixelFormat,
    pub(crate) levels: Vec<TiledLevel>,
    /// The columns and rows of a strip or tile of the file.
    chunk: (u32, u32),
    limits: Limits,
}

impl ExaminedFile {
    /// Examines the form of a file. No pixel is read.
    pub(crate) fn open(file: File, limits: &Limits) -> Result<Self, RefusedFile> {
        guarded(|| {
            let mut bounds = DecoderLimits::default();
            bounds.decoding_buffer_size = limits.strip;
            bounds.intermediate_buffer_size = limits.strip;
            bounds.ifd_value_size = MAX_TAG;
            let mut decoder = Decoder::new(BufReader::new(file))?.with_limits(bounds);
            let (columns, rows) = decoder.dimensions()?;
            let most = limits.side;
            if columns == 0 || rows == 0 || columns > most || rows > most {
                return refuse(format!("it has {columns} columns and {rows} rows: at most {most} each are accepted"));
            }
            let color = decoder.colortype()?;
            let format = match color {
                ColorType::Gray(bits @ (8 | 16)) => PixelFormat { samples: 1, bits: bits.into() },
                ColorType::RGB(bits @ (8 | 16)) => PixelFormat { samples: 3, bits: bits.into() },
                ColorType::RGBA(bits @ (8 | 16)) => PixelFormat { samples: 4, bits: bits.into() },
                other => {
                    return refuse(format!(
                        "its pixels are {other:?}: Gray, RGB and RGBA of 8 or 16 bits are accepted"
                    ));
                }
            };
            let planes: Option<u16> = decoder.find_tag_unsigned(Tag::PlanarConfiguration)?;
            if planes.is_some_and(|planes| planes != 1) {
                return refuse("its samples are in separate planes: only those side by side are accepted");
            }
            let pixels = u64::from(columns) * u64::from(rows) * format.octets();
            if pixels > limits.pixels {
                return refuse(format!("its pixels have {pixels} octets: at most {} are accepted", limits.pixels));
            }
            let chunk = decoder.chunk_dimensions();
            if chunk.0 == 0 || chunk.1 == 0 {
                return refuse("its strips or tiles are empty");
            }
            let of_strip = u64::from(chunk.0.min(columns)) * u64::from(chunk.1.min(rows)) * format.octets();
            if of_strip > limits.strip as u64 {
                return refuse(format!(
                    "one strip or tile of it has {of_strip} octets: at most {} are accepted (write smaller strips)",
                    limits.strip
                ));
            }
            let expected = u64::from(columns.div_ceil(chunk.0)) * u64::from(rows.div_ceil(chunk.1));
            let (kind, count) = match decoder.get_chunk_type() {
                ChunkType::Strip => ("strips", decoder.strip_count()?),
                ChunkType::Tile => ("tiles", decoder.tile_count()?),
            };
            if u64::from(count) != expected {
                return refuse(format!("it has {count} {kind}, and its size needs {expected}"));
            }
            let levels = levels(columns, rows, format);
            Ok(Self { decoder, format, levels, chunk, limits: *limits })
        })
    }

    /// The octets of the tiles of all zoom levels.
    pub(crate) fn tile_octets(&self) -> u64 {
        octets(&self.levels)
    }

    /// Decodes the pixels, strip by strip, and writes the tiles of all zoom levels into a file. They are on the disk when
    /// this returns.
    pub(crate) fn write_tiles(mut self, file: File, start: Instant) -> Result<(), RefusedFile> {
        let limit = self.limits.examination;
        let check = || -> Result<(), RefusedFile> {
            if start.elapsed() <= limit {
                Ok(())
            } else {
                refuse(format!("its examination takes longer than {limit:?}"))
            }
        };
        let mut tiles = TileWriter::new(file, self.levels.clone(), self.format)?;
        let across = self.levels[0].columns.div_ceil(self.chunk.0);
        let down = self.levels[0].rows.div_ceil(self.chunk.1);
        let mut octets = Vec::new();
        for number in 0..across * down {
            check()?;
            let (columns, decoded) = guarded(|| {
                let (columns, _) = self.decoder.chunk_data_dimensions(number);
                Ok((columns, self.decoder.read_chunk(number)?))
            })?;
            let pixels = match &decoded {
                DecodingResult::U8(pixels) if self.format.bits == 8 => &pixels[..],
                DecodingResult::U16(pixels) if self.format.bits == 16 => {
                    octets.clear();
                    octets.extend(pixels.iter().flat_map(|sample| sample.to_le_bytes()));
                    &octets[..]
                }
                _ => return refuse("its samples are no unsigned integers"),
            };
            let at = (number % across * self.chunk.0, number / across * self.chunk.1);
            tiles.write(at, columns, pixels)?;
        }
        tiles.reduce(check)?;
        Ok(())
    }
}

/// A panic of the decoder refuses its file, and ends nothing else.
fn guarded<T>(decode: impl FnOnce() -> Result<T, RefusedFile>) -> Result<T, RefusedFile> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|_| refuse("its decoder has failed"))
}
