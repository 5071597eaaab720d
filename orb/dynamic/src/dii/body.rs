//! The arguments of a request, encoded as in a GIOP 1.2 request to its server: one after the other, from a
//! multiple of eight on. To send them is to copy them, or to lend long ones. Only a server with another
//! version, byte order or code set makes them be encoded again.

use std::{borrow::Cow, fmt, ops::Range};

use spandrel_cdr::{Any, Binder, CdrError, CharSet, Decode, Decoder, Encode, Encoder, TypeCode, Typed, Wire, walk};
use spandrel_giop::SystemException;
use spandrel_sync::Arc;

use crate::{
    fit::derived,
    named::{ArgMode, bad_param, no_argument},
    value_types::TypedBinder,
};

/// The function that returns a Rust type's type code; it identifies the type.
pub(super) type Maker = fn() -> TypeCode;

/// The encoded octets of one argument.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) name: Cow<'static, str>,
    pub(super) mode: ArgMode,
    pub(super) type_code: TypeCode,
    /// The Rust type's function for `of`: for the same type it need not be called again.
    maker: Option<Maker>,
    /// Its octets in the block, with its alignment; empty if it is not sent.
    octets: Range<usize>,
    /// The types of values in it.
    types: Types,
}

/// A binder with the types of the values of an [`Any`].
#[derive(Clone, Default)]
struct Types(Option<Arc<dyn Binder>>);

impl fmt::Debug for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Types(..)" } else { "Types(none)" })
    }
}

impl Types {
    fn of(value: &Any) -> Self {
        Self(value.value().binder().map(Binder::share))
    }
}

/// All arguments as octets of one block.
#[derive(Debug)]
pub(super) struct Body {
    /// The number of octets in use.
    block: Vec<u8>,
    len: usize,
    /// A buffer for replacement values.
    spare: Vec<u8>,
    /// The first `count` arguments are in use; the others remain from an earlier use, and usually recur.
    arguments: Vec<Argument>,
    count: usize,
    /// Whether some text would differ in other code sets.
    is_coded: bool,
    /// Its wire form: that of the server, if known when the request was created.
    wire: Wire,
}

/// A wire form in which every value can be encoded.
fn own_wire() -> Wire {
    Wire { char_set: CharSet::Utf8, ..Wire::default() }
}

impl Body {
    /// No arguments, to be encoded in this wire form.
    pub(super) fn new(wire: Option<Wire>) -> Self {
        let wire = wire.unwrap_or_else(own_wire);
        Self { block: Vec::new(), len: 0, spare: Vec::new(), arguments: Vec::new(), count: 0, is_coded: false, wire }
    }

    /// Removes all arguments, and keeps their memory.
    pub(super) fn clear(&mut self) {
        (self.len, self.count, self.is_coded) = (0, 0, false);
    }

    pub(super) fn arguments(&self) -> &[Argument] {
        &self.arguments[..self.count]
    }

    fn argument(&self, index: usize) -> Result<&Argument, SystemException> {
        self.arguments().get(index).ok_or_else(|| no_argument(index, self.count))
    }

    /// Adds a sent argument.
    pub(super) fn push<T: Encode + Typed + ?Sized>(
        &mut self,
        name: Cow<'static, str>,
        mode: ArgMode,
        value: &T,
    ) -> Result<(), CdrError> {
        let octets = self.append(|out| value.encode(out))?;
        self.enter(name, mode, octets, Some(T::type_code), T::type_code, Types::default());
        Ok(())
    }

    /// Adds the value of an [`Any`] as a sent argument of this type.
    pub(super) fn push_any(
        &mut self,
        name: Cow<'static, str>,
        mode: ArgMode,
        value: &Any,
        type_code: TypeCode,
    ) -> Result<(), CdrError> {
        let octets = self.append(|out| value.write_value(out))?;
        self.enter(name, mode, octets, None, || type_code, Types::of(value));
        Ok(())
    }

    /// Adds an argument that is only returned.
    pub(super) fn push_out(&mut self, name: Cow<'static, str>, type_code: TypeCode) {
        self.enter(name, ArgMode::Out, self.len..self.len, None, || type_code, Types::default());
    }

    fn enter(
        &mut self,
        name: Cow<'static, str>,
        mode: ArgMode,
        octets: Range<usize>,
        maker: Option<Maker>,
        type_code: impl FnOnce() -> TypeCode,
        types: Types,
    ) {
        match self.arguments.get_mut(self.count) {
            Some(old) => {
                if !(old.maker.is_some() && is_same(old.maker, maker)) {
                    (old.type_code, old.maker) = (type_code(), maker);
                }
                (old.name, old.mode, old.octets, old.types) = (name, mode, octets, types);
            }
            None => self.arguments.push(Argument { name, mode, type_code: type_code(), maker, octets, types }),
        }
        self.count += 1;
    }

    /// Encodes a value after the present ones.
    fn append<'a>(
        &mut self,
        encode: impl FnOnce(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> Result<Range<usize>, CdrError> {
        let start = self.len;
        let mut out = Encoder::continuing(std::mem::take(&mut self.block), start, self.wire);
        if let Err(error) = encode(&mut out) {
            self.block = out.into_scratch();
            return Err(error);
        }
        self.is_coded |= out.depends_on_code_sets();
        (self.block, self.len) = out.into_whole();
        Ok(start..self.len)
    }

    /// Replaces the value of a sent argument.
    pub(super) fn set<T: Encode + Typed + ?Sized>(&mut self, index: usize, value: &T) -> Result<(), SystemException> {
        let maker: Maker = T::type_code;
        let argument = self.argument(index)?;
        if !is_same(argument.maker, Some(maker)) {
            let actual = T::type_code();
            argument.check_type(index, &actual)?;
            self.arguments[index].maker = Some(maker);
        }
        self.replace(index, |out| value.encode(out))?;
        self.arguments[index].types = Types::default();
        Ok(())
    }

    /// As [`Body::set`], with a value in an [`Any`].
    pub(super) fn set_any(&mut self, index: usize, value: &Any) -> Result<(), SystemException> {
        let argument = self.argument(index)?;
        let value = derived(value, &argument.type_code).ok_or_else(|| argument.refused(index, value.type_code()))?;
        self.replace(index, |out| value.write_value(out))?;
        self.arguments[index].types = Types::of(&value);
        Ok(())
    }

    fn replace<'a>(
        &mut self,
        index: usize,
        encode: impl FnOnce(&mut Encoder<'a>) -> Result<(), CdrError>,
    ) -> Result<(), SystemException> {
        let argument = self.argument(index)?;
        if !argument.mode.is_sent() {
            return Err(bad_param().with_detail(|| format!("argument {index} is `out`: it has no value to send")));
        }
        let old = argument.octets.clone();
        // Encoded beside the old value, which stays after an error.
        let misaligned = old.start % 8;
        let mut spare = std::mem::take(&mut self.spare);
        if spare.len() < misaligned {
            spare.resize(8, 0);
        }
        let mut out = Encoder::continuing(spare, misaligned, self.wire);
        let mut written = encode(&mut out);
        self.is_coded |= out.depends_on_code_sets();
        let len = out.position() - misaligned;
        let moved = len.wrapping_sub(old.len());
        // At another offset modulo eight, numbers may have other padding.
        let is_shifted = moved % 8 != 0;
        if written.is_ok() && is_shifted {
            written = self.write_range(index + 1..self.count, &mut out);
        }
        let (spare, end) = out.into_whole();
        if written.is_ok() {
            let replaced = if is_shifted { old.start..self.len } else { old.clone() };
            self.splice(replaced, &spare[misaligned..end]);
        }
        self.spare = spare;
        written?;
        self.arguments[index].octets = old.start..old.start + len;
        if is_shifted {
            self.find_ends(index + 1)?
        } else {
            self.shift(index + 1, moved)
        }
        Ok(())
    }

    fn splice(&mut self, old: Range<usize>, new: &[u8]) {
        let (tail, len) = (old.end..self.len, self.len - old.len() + new.len());
        if self.block.len() < len {
            self.block.resize(len, 0);
        }
        self.block.copy_within(tail, old.start + new.len());
        self.block[old.start..old.start + new.len()].copy_from_slice(new);
        self.len = len;
    }

    fn shift(&mut self, from: usize, by: usize) {
        for argument in &mut self.arguments[from..self.count] {
            let Range { start, end } = argument.octets;
            argument.octets = start.wrapping_add(by)..end.wrapping_add(by);
        }
    }

    /// Recomputes the ends of the arguments from here on, which were encoded again.
    fn find_ends(&mut self, from: usize) -> Result<(), CdrError> {
        let mut start = self.arguments[from - 1].octets.end;
        for index in from..self.count {
            let argument = &self.arguments[index];
            let mut input = self.input(argument).at(start);
            if argument.mode.is_sent() {
                walk::skip(&argument.type_code, &mut input)?;
            }
            let end = input.position();
            self.arguments[index].octets = start..end;
            start = end;
        }
        Ok(())
    }

    /// Encodes all sent arguments.
    pub(super) fn write<'a>(&'a self, out: &mut Encoder<'a>) -> Result<(), CdrError> {
        if self.len == 0 {
            return Ok(());
        }
        if self.agrees(out) {
            if self.is_coded {
                out.record_code_sets();
            }
            out.lend(&self.block[..self.len]);
            return Ok(());
        }
        self.write_range(0..self.count, out)
    }

    /// Whether the octets can be copied to the encoder's position without conversion.
    fn agrees(&self, out: &Encoder<'_>) -> bool {
        let (its, mine) = (out.wire(), self.wire);
        let same_texts = (its.version, its.char_set, its.wchar_set) == (mine.version, mine.char_set, mine.wchar_set);
        its.order == mine.order && out.misalignment() == 0 && (!self.is_coded || same_texts)
    }

    /// A decoder of the octets, with the known types of this argument's values.
    fn input<'b>(&'b self, argument: &'b Argument) -> Decoder<'b> {
        let input = Decoder::new(&self.block[..self.len], self.wire);
        match &argument.types.0 {
            Some(types) => input.with_binder(&**types),
            None => input,
        }
    }

    fn write_range(&self, range: Range<usize>, out: &mut Encoder<'_>) -> Result<(), CdrError> {
        let sent = self.arguments[range].iter().filter(|argument| argument.mode.is_sent());
        for argument in sent {
            let mut input = self.input(argument).at(argument.octets.start);
            walk::copy(&argument.type_code, &mut input, out)?;
        }
        Ok(())
    }

    /// The value of a sent argument.
    pub(super) fn sent(&self, index: usize, binder: &dyn Binder) -> Result<Any, CdrError> {
        let argument = &self.arguments[index];
        let input = self.input(argument).at(argument.octets.start);
        match &argument.types.0 {
            // The binder of the given `Any` may be without an ORB.
            Some(types) => {
                let both = TypedBinder::both(types, binder);
                Any::read(argument.type_code.clone(), &mut input.with_binder(&both))
            }
            None => Any::read(argument.type_code.clone(), &mut input.with_binder(binder)),
        }
    }

    /// As [`Body::sent`], as a Rust value of the argument's type.
    pub(super) fn sent_as<T: Decode + Typed>(&self, index: usize, binder: &dyn Binder) -> Result<T, SystemException> {
        let argument = self.argument(index)?;
        argument.check_type(index, &T::type_code())?;
        let input = Decoder::new(&self.block[..self.len], self.wire).with_binder(binder);
        Ok(T::decode(&mut input.at(argument.octets.start))?)
    }
}

fn is_same(a: Option<Maker>, b: Option<Maker>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if std::ptr::fn_addr_eq(a, b))
}

impl Argument {
    /// BAD_PARAM unless the argument accepts values of the type.
    pub(super) fn check_type(&self, index: usize, actual: &TypeCode) -> Result<(), SystemException> {
        if self.type_code.equivalent(actual) { Ok(()) } else { Err(self.refused(index, actual)) }
    }

    #[cold]
    fn refused(&self, index: usize, actual: &TypeCode) -> SystemException {
        bad_param().with_detail(|| format!("argument {index} is of type `{}`, not `{actual}`", self.type_code))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use spandrel_cdr::ByteOrder;

    use super::*;

    /// A value whose padding depends on its position.
    #[derive(Clone, Debug)]
    enum Value {
        Octet(u8),
        Long(i32),
        Double(f64),
        Text(String),
        Mixed(Vec<(u8, String)>),
        Long64(Vec<i64>),
        Any(String),
    }

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<u8>().prop_map(Value::Octet),
            any::<i32>().prop_map(Value::Long),
            any::<f64>().prop_filter("NaN", |it| !it.is_nan()).prop_map(Value::Double),
            "[a-z\u{e9}\u{20ac}]{0,9}".prop_map(Value::Text),
            proptest::collection::vec((any::<u8>(), "[a-z]{0,5}"), 0..3).prop_map(Value::Mixed),
            proptest::collection::vec(any::<i64>(), 0..400).prop_map(Value::Long64),
            "[a-z]{0,9}".prop_map(Value::Any),
        ]
    }

    fn pair() -> TypeCode {
        let members = [("a", TypeCode::OCTET), ("b", TypeCode::STRING)];
        TypeCode::structure("IDL:Pair:1.0", "Pair", &members).unwrap()
    }

    impl Value {
        fn any(&self) -> Any {
            match self {
                Self::Octet(value) => Any::new(value),
                Self::Long(value) => Any::new(value),
                Self::Double(value) => Any::new(value),
                Self::Text(value) => Any::new(value),
                Self::Mixed(values) => Any::write(TypeCode::sequence(&pair(), 0).unwrap(), |out| {
                    out.len(values.len())?;
                    values.iter().try_for_each(|(a, b)| {
                        out.u8(*a);
                        out.short_str(b)
                    })
                }),
                Self::Long64(values) => Any::new(values),
                Self::Any(text) => Any::new(Any::new(text).unwrap()),
            }
            .unwrap()
        }
    }

    fn body(values: &[Any]) -> Body {
        let mut body = Body::new(None);
        for value in values {
            body.push_any(Cow::Borrowed(""), ArgMode::InOut, value, value.type_code().clone()).unwrap();
        }
        body
    }

    fn written(body: &Body, wire: Wire) -> Vec<u8> {
        let mut out = Encoder::new(wire);
        out.u64(0);
        body.write(&mut out).unwrap();
        out.to_vec()
    }

    /// The encoding of the values, one after the other.
    fn expected(values: &[Any], wire: Wire) -> Vec<u8> {
        let mut out = Encoder::new(wire);
        out.u64(0);
        values.iter().try_for_each(|value| value.write_value(&mut out)).unwrap();
        out.to_vec()
    }

    proptest! {
        #[test]
        fn replaced_values_equal_a_new_request(
            first in proptest::collection::vec(value(), 1..6),
            later in proptest::collection::vec((any::<prop::sample::Index>(), value()), 0..12),
            little: bool,
        ) {
            let later: Vec<_> = later.into_iter().map(|(index, value)| (index.index(first.len()), value)).collect();
            assert_equals_a_new_request(&first, &later, if little { ByteOrder::Little } else { ByteOrder::Big });
        }
    }

    /// A failure that the property above has found.
    #[test]
    fn an_any_is_not_replaced_by_a_value_of_another_type() {
        assert_equals_a_new_request(&[Value::Any(String::new())], &[(0, Value::Octet(0))], ByteOrder::Big);
    }

    /// Compares a request whose values are replaced with one that has the later values from the beginning.
    fn assert_equals_a_new_request(first: &[Value], later: &[(usize, Value)], order: ByteOrder) {
        let mut values: Vec<Any> = first.iter().map(Value::any).collect();
        let mut body = body(&values);
        for (index, value) in later {
            let (old, new) = (&values[*index], value.any());
            let replaced = body.set_any(*index, &new);
            if old.type_code().equivalent(new.type_code()) {
                replaced.unwrap();
                values[*index] = new;
            } else {
                assert!(replaced.is_err());
            }
        }
        let wire = Wire { order, ..own_wire() };
        assert_eq!(written(&body, wire), expected(&values, wire));
        for (index, value) in values.iter().enumerate() {
            assert_eq!(&body.sent(index, &NoBinder).unwrap(), value);
        }
    }

    /// A binder for values without references.
    #[derive(Debug)]
    struct NoBinder;

    impl Binder for NoBinder {
        fn bind(&self, _: spandrel_cdr::Ior) -> Result<Arc<dyn std::any::Any + Send + Sync>, CdrError> {
            unreachable!("the values have no references")
        }

        fn share(&self) -> Arc<dyn Binder> {
            Arc::new(Self)
        }
    }

    #[test]
    fn recurring_arguments_keep_their_types() {
        let mut body = Body::new(None);
        for round in 0..3 {
            body.clear();
            body.push(Cow::Borrowed(""), ArgMode::In, &vec![round; 3]).unwrap();
            body.push_out(Cow::Borrowed("o"), TypeCode::SHORT);
            body.push(Cow::Borrowed(""), ArgMode::In, &[1_u8, 2]).unwrap();
            assert_eq!(body.arguments().len(), 3);
            assert!(body.arguments()[0].type_code.equivalent(&Vec::<i32>::type_code()));
            assert!(body.set(1, &1_i16).is_err());
            body.set(0, &vec![4, 5, 6, 7]).unwrap();
            assert_eq!(body.sent_as::<[u8; 2]>(2, &NoBinder).unwrap(), [1, 2]);
        }
    }

    #[test]
    fn adjacent_values_are_aligned_in_every_order() {
        let members = [("id", TypeCode::LONG, spandrel_cdr::Visibility::Public)];
        let none = spandrel_cdr::ValueModifier::None;
        let type_code = TypeCode::value("IDL:Base:1.0", "Base", none, None, &members).unwrap();
        let value = Any::write(type_code.clone(), |out| {
            out.u32(0x7fff_ff02);
            out.short_str("IDL:Base:1.0")?;
            out.i32(7);
            Ok(())
        })
        .unwrap();
        for (mine, its) in
            [(ByteOrder::Big, ByteOrder::Big), (ByteOrder::Big, ByteOrder::Little), (ByteOrder::Little, ByteOrder::Big)]
        {
            let wire = |order| Wire { order, ..Wire::default() };
            let mut body = Body::new(Some(wire(mine)));
            for _ in 0..2 {
                body.push_any(Cow::Borrowed(""), ArgMode::In, &value, type_code.clone()).unwrap();
            }
            let octets = written(&body, wire(its));
            let mut input = Decoder::new(&octets, wire(its)).at(8);
            for _ in 0..2 {
                assert_eq!(Any::read(type_code.clone(), &mut input).unwrap(), value, "{mine:?} {its:?} {octets:02x?}");
            }
        }
    }
}
