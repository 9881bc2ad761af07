//! Equality of JSON values: `1` equals `1.0`, and the order of members is irrelevant.

use crate::numbers::{self, ExactNumber, exact};
use serde_json::Value;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

/// Up to this many items each is compared with each; hashing so few would cost more.
const PAIRWISE_ITEMS_MAX: usize = 8;

pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => numbers::compare(a, b).is_eq(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let has_same = |(name, a)| b.get(name).is_some_and(|b| equal(a, b));
            a.len() == b.len() && a.iter().all(has_same)
        }
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Null, Value::Null) => true,
        _ => false,
    }
}

/// Whether no two items are the same, in time that grows with their number and not with its square.
pub(crate) fn are_unique(items: &[Value]) -> bool {
    if items.len() <= PAIRWISE_ITEMS_MAX {
        let mut rest = items.iter();
        return std::iter::from_fn(|| rest.next().map(|item| (item, rest.clone())))
            .all(|(item, mut later)| !later.any(|other| equal(item, other)));
    }
    // Seeded randomly each time, so that no colliding values can be prepared.
    let hashes = RandomState::new();
    let mut seen: HashMap<u64, Vec<&Value>> = HashMap::with_capacity(items.len());
    items.iter().all(|item| {
        let alike = seen.entry(hash(item, &hashes)).or_default();
        let is_new = !alike.iter().any(|other| equal(item, other));
        alike.push(item);
        is_new
    })
}

fn hash(value: &Value, hashes: &RandomState) -> u64 {
    let mut hasher = hashes.build_hasher();
    std::mem::discriminant(value).hash(&mut hasher);
    match value {
        Value::Null => {}
        Value::Bool(is_true) => is_true.hash(&mut hasher),
        Value::Number(number) => match exact(number) {
            ExactNumber::Whole(whole) => whole.hash(&mut hasher),
            ExactNumber::Float(float) => float.to_bits().hash(&mut hasher),
        },
        Value::String(text) => text.hash(&mut hasher),
        Value::Array(items) => {
            items.iter().for_each(|item| hash(item, hashes).hash(&mut hasher));
        }
        Value::Object(members) => {
            // A sum, because the order of members is irrelevant.
            let of_member =
                |(name, value): (&String, &Value)| hashes.hash_one((name, hash(value, hashes)));
            members.iter().map(of_member).fold(0, u64::wrapping_add).hash(&mut hasher);
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_the_same_however_they_are_written() {
        let same = [
            (json!(1), json!(1.0)),
            (json!([0, {"a": 2.0}]), json!([-0.0, {"a": 2}])),
            (json!({"a": 1, "b": [null]}), json!({"b": [null], "a": 1})),
        ];
        for (a, b) in same {
            assert!(equal(&a, &b), "{a} {b}");
            let many = (0..20).map(|n| json!([n])).chain([a, b]).collect::<Vec<_>>();
            assert!(!are_unique(&many));
        }
        let different = [
            (json!(1), json!(true)),
            (json!(0), json!(false)),
            (json!(null), json!(false)),
            (json!([]), json!({})),
            (json!({"a": 1}), json!({"a": 1, "b": 1})),
            (json!({"a": 1}), json!({"b": 1})),
            (json!([1, 2]), json!([2, 1])),
            (json!("1"), json!(1)),
            (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64)),
        ];
        for (a, b) in different {
            assert!(!equal(&a, &b), "{a} {b}");
            assert!(are_unique(&[a.clone(), b.clone()]));
            let many = (0..20).map(|n| json!([[n]])).chain([a, b]).collect::<Vec<_>>();
            assert!(are_unique(&many));
        }
    }

    #[test]
    fn many_items_are_compared_soon() {
        let items: Vec<_> = (0..200_000).map(|n| json!(n)).collect();
        assert!(are_unique(&items));
    }
}
