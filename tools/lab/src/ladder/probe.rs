//! Counts calls of the interpreter's methods, as the paper's profiler did; or nothing, in timed runs.

/// A method of the engine, in the paper's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Traverse,
    StructTraverse,
    CalcNested,
    /// The papers' `CDR::encoder` or `CDR::decoder`.
    Visit,
    Free,
    /// The methods `put_…` and `get_…` of primitives.
    Primitive,
}

impl Method {
    pub(crate) const ALL: [Self; 6] =
        [Self::Traverse, Self::StructTraverse, Self::CalcNested, Self::Visit, Self::Free, Self::Primitive];

    /// The name that tables use.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Traverse => "traverse",
            Self::StructTraverse => "struct_traverse",
            Self::CalcNested => "calc_nested_size",
            Self::Visit => "CDR coder",
            Self::Free => "deep_free",
            Self::Primitive => "CDR put, get",
        }
    }
}

/// The number of calls of each method.
pub(crate) type Calls = Vec<(Method, u64)>;

/// Gets each call. Code that is in line in each case is none; what the compiler may put in line counts as one.
pub(super) trait Probe {
    fn called(&mut self, method: Method);
}

/// A probe that counts nothing.
pub(super) struct Silent;

impl Probe for Silent {
    #[inline(always)]
    fn called(&mut self, _method: Method) {}
}

/// A probe that counts each method's calls.
#[derive(Default)]
pub(super) struct Counting([u64; Method::ALL.len()]);

impl Counting {
    pub(super) fn into_calls(self) -> Calls {
        Method::ALL.into_iter().zip(self.0).collect()
    }
}

impl Probe for Counting {
    fn called(&mut self, method: Method) {
        self.0[method as usize] += 1;
    }
}
