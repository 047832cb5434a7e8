//! The usages of a certificate, by the names of the certificates API.

use yasna::models::ObjectIdentifier;

/// The bits of the extension `keyUsage`, by name.
const KEY: [(&str, usize); 10] = [
    ("signing", 0),
    ("digital signature", 0),
    ("content commitment", 1),
    ("key encipherment", 2),
    ("data encipherment", 3),
    ("key agreement", 4),
    ("cert sign", 5),
    ("crl sign", 6),
    ("encipher only", 7),
    ("decipher only", 8),
];

/// The identifiers of the extension `extKeyUsage`, by name.
const EXTENDED: [(&str, &[u64]); 13] = [
    ("any", &[2, 5, 29, 37, 0]),
    ("server auth", &[1, 3, 6, 1, 5, 5, 7, 3, 1]),
    ("client auth", &[1, 3, 6, 1, 5, 5, 7, 3, 2]),
    ("code signing", &[1, 3, 6, 1, 5, 5, 7, 3, 3]),
    ("email protection", &[1, 3, 6, 1, 5, 5, 7, 3, 4]),
    ("s/mime", &[1, 3, 6, 1, 5, 5, 7, 3, 4]),
    ("ipsec end system", &[1, 3, 6, 1, 5, 5, 7, 3, 5]),
    ("ipsec tunnel", &[1, 3, 6, 1, 5, 5, 7, 3, 6]),
    ("ipsec user", &[1, 3, 6, 1, 5, 5, 7, 3, 7]),
    ("timestamping", &[1, 3, 6, 1, 5, 5, 7, 3, 8]),
    ("ocsp signing", &[1, 3, 6, 1, 5, 5, 7, 3, 9]),
    ("microsoft sgc", &[1, 3, 6, 1, 4, 1, 311, 10, 3, 3]),
    ("netscape sgc", &[2, 16, 840, 1, 113_730, 4, 1]),
];

/// The usages of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usages {
    /// The bits of `keyUsage`.
    pub(super) key: [bool; 9],
    /// The identifiers of `extKeyUsage`, without duplicates.
    pub(super) extended: Vec<&'static [u64]>,
}

impl Usages {
    /// Returns the usages with these names. Validation rejects unknown names before.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut usages = Self::default();
        for name in names {
            for (_, bit) in KEY.iter().filter(|(known, _)| *known == name) {
                usages.key[*bit] = true;
            }
            let extended = EXTENDED.iter().filter(|(known, _)| *known == name);
            usages.extended.extend(extended.map(|(_, id)| *id));
        }
        usages.extended.sort_unstable();
        usages.extended.dedup();
        usages
    }

    /// Returns the identifiers of `extKeyUsage`.
    pub(super) fn identifiers(&self) -> impl Iterator<Item = ObjectIdentifier> {
        self.extended.iter().map(|id| ObjectIdentifier::from_slice(id))
    }

    /// Returns the bytes of `keyUsage` and the number of its bits, which end with a set bit.
    pub(super) fn bits(&self) -> Option<([u8; 2], usize)> {
        let length = self.key.iter().rposition(|bit| *bit)? + 1;
        let mut bytes = [0; 2];
        for (bit, _) in self.key.iter().enumerate().filter(|(_, is_set)| **is_set) {
            bytes[bit / 8] |= 0x80 >> (bit % 8);
        }
        Some((bytes, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_end_with_a_set_bit() {
        let usages = Usages::named(["signing", "key encipherment", "client auth", "client auth"]);
        assert_eq!(usages.bits(), Some(([0b1010_0000, 0], 3)));
        assert_eq!(usages.extended.len(), 1);
        let decipher = Usages::named(["decipher only"]);
        assert_eq!(decipher.bits(), Some(([0, 0x80], 9)));
        assert_eq!(Usages::named(["server auth"]).bits(), None);
    }
}
