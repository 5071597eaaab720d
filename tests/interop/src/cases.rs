//! The `rotate_*` operations, each with its case name, its error type, the parameter type of `a`, and its
//! value type.
//!
//! The servants and the client are generated from the same lists, which `primitive_cases!` and the other
//! macros pass on.

/// The operations of `Primitives`, whose parameters are passed by value.
macro_rules! primitive_cases {
    ($each:ident!($($more:tt)*)) => {
        $each! { ($($more)*)
            rotate_short "short" RotateShortError (i16) i16;
            rotate_ushort "ushort" RotateUshortError (u16) u16;
            rotate_long "long" RotateLongError (i32) i32;
            rotate_ulong "ulong" RotateUlongError (u32) u32;
            rotate_longlong "longlong" RotateLonglongError (i64) i64;
            rotate_ulonglong "ulonglong" RotateUlonglongError (u64) u64;
            rotate_float "float" RotateFloatError (f32) f32;
            rotate_double "double" RotateDoubleError (f64) f64;
            rotate_longdouble "longdouble" RotateLongdoubleError (LongDouble) LongDouble;
            rotate_boolean "boolean" RotateBooleanError (bool) bool;
            rotate_char "char" RotateCharError (Char) Char;
            rotate_octet "octet" RotateOctetError (u8) u8;
            rotate_colour "colour" RotateColourError (Colour) Colour;
            rotate_height "height" RotateHeightError (i32) i32;
        }
    };
}

/// The operations of `Strings`.
macro_rules! string_cases {
    ($each:ident!($($more:tt)*)) => {
        $each! { ($($more)*)
            rotate_string "string" RotateStringError (&str) String;
            rotate_shorttext "shorttext" RotateShorttextError (&ShortText) ShortText;
            rotate_remark "remark" RotateRemarkError (&str) String;
        }
    };
}

/// The operations of `Sequences`.
macro_rules! sequence_cases {
    ($each:ident!($($more:tt)*)) => {
        $each! { ($($more)*)
            rotate_shorts "shorts" RotateShortsError (&[i16]) Vec<i16>;
            rotate_ushorts "ushorts" RotateUshortsError (&[u16]) Vec<u16>;
            rotate_longs "longs" RotateLongsError (&[i32]) Vec<i32>;
            rotate_ulongs "ulongs" RotateUlongsError (&[u32]) Vec<u32>;
            rotate_longlongs "longlongs" RotateLonglongsError (&[i64]) Vec<i64>;
            rotate_ulonglongs "ulonglongs" RotateUlonglongsError (&[u64]) Vec<u64>;
            rotate_floats "floats" RotateFloatsError (&[f32]) Vec<f32>;
            rotate_doubles "doubles" RotateDoublesError (&[f64]) Vec<f64>;
            rotate_booleans "booleans" RotateBooleansError (&[bool]) Vec<bool>;
            rotate_chars "chars" RotateCharsError (&[Char]) Vec<Char>;
            rotate_octets "octets" RotateOctetsError (&[u8]) Vec<u8>;
            rotate_colours "colours" RotateColoursError (&[Colour]) Vec<Colour>;
            rotate_strings "strings" RotateStringsError (&[String]) Vec<String>;
            rotate_shorttexts "shorttexts" RotateShorttextsError (&[ShortText]) Vec<ShortText>;
            rotate_binstructs "binstructs" RotateBinstructsError (&[BinStruct]) Vec<BinStruct>;
            rotate_pointseq "pointseq" RotatePointseqError (&[Point]) Vec<Point>;
            rotate_packedseq "packedseq" RotatePackedseqError (&[Packed]) Vec<Packed>;
            rotate_grids "grids" RotateGridsError (&[Grid]) Vec<Grid>;
            rotate_cubes "cubes" RotateCubesError (&[Cube]) Vec<Cube>;
            rotate_doubleseqs "doubleseqs" RotateDoubleseqsError (&[Vec<f64>]) Vec<Vec<f64>>;
            rotate_stringseqs "stringseqs" RotateStringseqsError (&[Vec<String>]) Vec<Vec<String>>;
            rotate_boundedlongs "boundedlongs" RotateBoundedlongsError (&BoundedLongSeq) BoundedLongSeq;
            rotate_boundedtexts "boundedtexts" RotateBoundedtextsError (&BoundedTextSeq) BoundedTextSeq;
            rotate_boundednested "boundednested" RotateBoundednestedError (&BoundedNestedSeq) BoundedNestedSeq;
            rotate_records "records" RotateRecordsError (&[Record]) Vec<Record>;
        }
    };
}

/// The operations of `Structs`.
macro_rules! struct_cases {
    ($each:ident!($($more:tt)*)) => {
        $each! { ($($more)*)
            rotate_binstruct "binstruct" RotateBinstructError (&BinStruct) BinStruct;
            rotate_point "point" RotatePointError (&Point) Point;
            rotate_packed "packed" RotatePackedError (&Packed) Packed;
            rotate_segment "segment" RotateSegmentError (&Segment) Segment;
            rotate_scalars "scalars" RotateScalarsError (&Scalars) Scalars;
            rotate_grid "grid" RotateGridError (&Grid) Grid;
            rotate_record "record" RotateRecordError (&Record) Record;
            rotate_envelope "envelope" RotateEnvelopeError (&Envelope) Envelope;
            rotate_choice "choice" RotateChoiceError (&Choice) Choice;
            rotate_wish "wish" RotateWishError (&Wish) Wish;
            rotate_tree "tree" RotateTreeError (&Tree) Tree;
            rotate_kinds "kinds" RotateKindsError (&Kinds) Kinds;
            rotate_keywords "keywords" RotateKeywordsError (&Keywords) Keywords;
        }
    };
}

/// The operations of `Arrays`.
macro_rules! array_cases {
    ($each:ident!($($more:tt)*)) => {
        $each! { ($($more)*)
            rotate_digest "digest" RotateDigestError (&Digest) Digest;
            rotate_row "row" RotateRowError (&Row) Row;
            rotate_cube "cube" RotateCubeError (&Cube) Cube;
            rotate_matrix "matrix" RotateMatrixError (&Matrix) Matrix;
            rotate_palette "palette" RotatePaletteError (&Palette) Palette;
            rotate_points "points" RotatePointsError (&Points) Points;
            rotate_names "names" RotateNamesError (&Names) Names;
            rotate_rows "rows" RotateRowsError (&Rows) Rows;
            rotate_shortseqpair "shortseqpair" RotateShortseqpairError (&ShortSeqPair) ShortSeqPair;
            rotate_recordpair "recordpair" RotateRecordpairError (&Records) Records;
        }
    };
}

pub(crate) use {array_cases, primitive_cases, sequence_cases, string_cases, struct_cases};
