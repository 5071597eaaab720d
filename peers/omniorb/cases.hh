// The rotate_* operations by interface and by the way C++ passes their type: CASE(operation suffix, type).
#ifndef CASES_HH
#define CASES_HH

#define PRIMITIVE_CASES(CASE) \
    CASE(short, CORBA::Short) CASE(ushort, CORBA::UShort) CASE(long, CORBA::Long) CASE(ulong, CORBA::ULong) \
    CASE(longlong, CORBA::LongLong) CASE(ulonglong, CORBA::ULongLong) CASE(float, CORBA::Float) \
    CASE(double, CORBA::Double) CASE(longdouble, CORBA::LongDouble) CASE(boolean, CORBA::Boolean) \
    CASE(char, CORBA::Char) CASE(octet, CORBA::Octet) CASE(colour, Interop::Colour) CASE(height, Interop::Height)

#define STRING_CASES(CASE) CASE(string, unbounded) CASE(shorttext, Interop::BOUND) CASE(remark, unbounded)

#define SEQUENCE_CASES(CASE) \
    CASE(shorts, Interop::ShortSeq) CASE(ushorts, Interop::UShortSeq) CASE(longs, Interop::LongSeq) \
    CASE(ulongs, Interop::ULongSeq) CASE(longlongs, Interop::LongLongSeq) \
    CASE(ulonglongs, Interop::ULongLongSeq) CASE(floats, Interop::FloatSeq) CASE(doubles, Interop::DoubleSeq) \
    CASE(booleans, Interop::BooleanSeq) CASE(chars, Interop::CharSeq) CASE(octets, Interop::OctetSeq) \
    CASE(colours, Interop::ColourSeq) CASE(strings, Interop::StringSeq) \
    CASE(shorttexts, Interop::ShortTextSeq) CASE(binstructs, Interop::BinStructSeq) \
    CASE(pointseq, Interop::PointSeq) CASE(packedseq, Interop::PackedSeq) CASE(grids, Interop::GridSeq) \
    CASE(cubes, Interop::CubeSeq) CASE(doubleseqs, Interop::DoubleSeqSeq) \
    CASE(stringseqs, Interop::StringSeqSeq) CASE(boundedlongs, Interop::BoundedLongSeq) \
    CASE(boundedtexts, Interop::BoundedTextSeq) CASE(boundednested, Interop::BoundedNestedSeq) \
    CASE(records, Interop::RecordSeq)

#define FIXED_STRUCT_CASES(CASE) \
    CASE(binstruct, Interop::BinStruct) CASE(point, Interop::Point) CASE(packed, Interop::Packed) \
    CASE(segment, Interop::Segment) CASE(scalars, Interop::Scalars) CASE(grid, Interop::Grid) \
    CASE(choice, Interop::Choice)
#define VARIABLE_STRUCT_CASES(CASE) \
    CASE(record, Interop::Record) CASE(envelope, Interop::Envelope) CASE(keywords, Interop::Keywords) \
    CASE(wish, Interop::Wish) CASE(tree, Interop::Tree) CASE(kinds, Interop::Kinds)

#define FIXED_ARRAY_CASES(CASE) \
    CASE(digest, Interop::Digest) CASE(row, Interop::Row) CASE(cube, Interop::Cube) \
    CASE(matrix, Interop::Matrix) CASE(palette, Interop::Palette) CASE(points, Interop::Points) \
    CASE(rows, Interop::Rows)
#define VARIABLE_ARRAY_CASES(CASE) \
    CASE(names, Interop::Names) CASE(shortseqpair, Interop::ShortSeqPair) CASE(recordpair, Interop::Records)

#endif
