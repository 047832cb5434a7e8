//! Enumerations with names for the command line. Each row of the table has a variant, its
//! kebab-case name and a one-sentence summary.

/// Defines an enumeration whose variants have a name and a summary.
#[macro_export]
macro_rules! named {
    ($(#[$attribute:meta])* $named:ident { $($variant:ident $name:literal $summary:literal)* }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $named {
            $(#[doc = $summary] $variant,)*
        }

        impl $named {
            /// The number of variants.
            pub const COUNT: usize = [$(Self::$variant),*].len();

            fn rows() -> &'static [(Self, &'static str, &'static str)] {
                const ROWS: &[($named, &str, &str)] = &[$(($named::$variant, $name, $summary),)*];
                ROWS
            }

            /// Returns all variants in the order of the table.
            pub fn all() -> impl Iterator<Item = Self> {
                Self::rows().iter().map(|(one, _, _)| *one)
            }

            /// Returns the variant with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::rows().iter().find(|(_, known, _)| *known == name).map(|(one, _, _)| *one)
            }

            /// Returns the name on the command line.
            pub fn name(self) -> &'static str {
                Self::rows()[self as usize].1
            }

            /// Returns the one-sentence summary.
            pub fn summary(self) -> &'static str {
                Self::rows()[self as usize].2
            }
        }

        impl std::fmt::Display for $named {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
