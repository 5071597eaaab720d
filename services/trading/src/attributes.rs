//! The attributes of a trader, which `Admin` changes.

use spandrel::services::cos_trading::FollowOption;

/// The attributes of a trader: the defaults and bounds of policies, and the supported kinds of offers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Attributes {
    /// The offers that a query without `search_card` examines at most (default 10,000,000).
    pub def_search_card: u32,
    /// The bound of `search_card` (default 10,000,000).
    pub max_search_card: u32,
    /// The matching offers that are ordered without `match_card` (default 10,000,000).
    pub def_match_card: u32,
    /// The bound of `match_card` (default 10,000,000).
    pub max_match_card: u32,
    /// The offers of a result without `return_card` (default 10,000).
    pub def_return_card: u32,
    /// The bound of `return_card` (default 100,000).
    pub max_return_card: u32,
    /// The most offers in one reply (default 10,000).
    pub max_list: u32,
    /// The hops of a query without `hop_count` (default 5).
    pub def_hop_count: u32,
    /// The bound of `hop_count` (default 10).
    pub max_hop_count: u32,
    /// The follow rule of a query without `link_follow_rule` (default `if_no_local`).
    pub def_follow_policy: FollowOption,
    /// The bound of `link_follow_rule` (default `always`).
    pub max_follow_policy: FollowOption,
    /// The bound of the limiting rule of a link (default `always`).
    pub max_link_follow_policy: FollowOption,
    /// Whether properties may change, and so `modify` is implemented (default yes).
    pub supports_modifiable_properties: bool,
    /// Whether values may be dynamic (default yes).
    pub supports_dynamic_properties: bool,
    /// Whether proxy offers take part in queries (default yes).
    pub supports_proxy_offers: bool,
    /// The beginning of the ids of this trader's own requests.
    pub request_id_stem: Vec<u8>,
}

impl Default for Attributes {
    fn default() -> Self {
        Self {
            def_search_card: 10_000_000,
            max_search_card: 10_000_000,
            def_match_card: 10_000_000,
            max_match_card: 10_000_000,
            def_return_card: 10_000,
            max_return_card: 100_000,
            max_list: 10_000,
            def_hop_count: 5,
            max_hop_count: 10,
            def_follow_policy: FollowOption::IfNoLocal,
            max_follow_policy: FollowOption::Always,
            max_link_follow_policy: FollowOption::Always,
            supports_modifiable_properties: true,
            supports_dynamic_properties: true,
            supports_proxy_offers: true,
            request_id_stem: Vec::new(),
        }
    }
}

/// The attributes in a store: the numbers in the order of the fields, then the stem.
pub(crate) type AttributeFields = (Vec<u32>, Vec<FollowOption>, Vec<bool>, Vec<u8>);

impl Attributes {
    pub(crate) fn fields(&self) -> AttributeFields {
        let numbers = vec![
            self.def_search_card,
            self.max_search_card,
            self.def_match_card,
            self.max_match_card,
            self.def_return_card,
            self.max_return_card,
            self.max_list,
            self.def_hop_count,
            self.max_hop_count,
        ];
        let rules = vec![self.def_follow_policy, self.max_follow_policy, self.max_link_follow_policy];
        let support =
            vec![self.supports_modifiable_properties, self.supports_dynamic_properties, self.supports_proxy_offers];
        (numbers, rules, support, self.request_id_stem.clone())
    }

    /// `None` for another number of fields.
    pub(crate) fn from_fields((numbers, rules, support, stem): AttributeFields) -> Option<Self> {
        let [search, max_search, matches, max_match, returned, max_return, max_list, hops, max_hops] =
            numbers.try_into().ok()?;
        let [def_follow_policy, max_follow_policy, max_link_follow_policy] = rules.try_into().ok()?;
        let [supports_modifiable_properties, supports_dynamic_properties, supports_proxy_offers] =
            support.try_into().ok()?;
        Some(Self {
            def_search_card: search,
            max_search_card: max_search,
            def_match_card: matches,
            max_match_card: max_match,
            def_return_card: returned,
            max_return_card: max_return,
            max_list,
            def_hop_count: hops,
            max_hop_count: max_hops,
            def_follow_policy,
            max_follow_policy,
            max_link_follow_policy,
            supports_modifiable_properties,
            supports_dynamic_properties,
            supports_proxy_offers,
            request_id_stem: stem,
        })
    }
}
