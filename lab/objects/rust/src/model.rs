//! The objects, once: the language's own. Each implementation tells how it reads and writes their
//! fields.

use rkyv::{Archive, Deserialize, Serialize};

use crate::Failure;
use crate::checksum::Checksum;
use crate::record::Reader;

/// The keys by which objects are sorted; the second is 0 where one is enough.
pub type Key = (i32, i32);

/// Calls a macro with each object and its fields, in the order of the checksum.
macro_rules! objects {
    ($with:ident) => {
        $with!(Part {
            part_key: i32, name: str, mfgr: str, brand: str, type_name: str, size: i32,
            container: str, retail_price: f64, comment: str
        } structs {} lists {});

        $with!(Supplier {
            supplier_key: i32, name: str, address: str, nation_key: i32, phone: str, acctbal: f64,
            comment: str
        } structs {} lists {});

        $with!(LineItem {
            order_key: i32, line_number: i32, quantity: f64, extended_price: f64, discount: f64,
            tax: f64, return_flag: str, line_status: str, ship_date: i32, commit_date: i32,
            receipt_date: i32, ship_instruct: str, ship_mode: str, comment: str
        } structs { supplier: Supplier, part: Part } lists {});

        $with!(Order {
            order_key: i32, cust_key: i32, order_status: str, total_price: f64, order_date: i32,
            order_priority: str, clerk: str, ship_priority: i32, comment: str
        } structs {} lists { line_items: LineItem });

        $with!(Customer {
            cust_key: i32, name: str, address: str, nation_key: i32, phone: str, acctbal: f64,
            mkt_segment: str, comment: str
        } structs {} lists { orders: Order });

        $with!(Entry { position: i32, value: f64 } structs {} lists {});

        $with!(SparseVector {} structs {} lists { entries: Entry });
    };
}
pub(crate) use objects;

macro_rules! data_type {
    (i32) => {
        i32
    };
    (f64) => {
        f64
    };
    (str) => {
        String
    };
}
macro_rules! sum {
    (str, $h:ident, $v:expr) => {
        $h.str($v.as_bytes())
    };
    ($number:ident, $h:ident, $v:expr) => {
        $h.$number($v)
    };
}
macro_rules! own {
    ($own:ident { $($name:ident: $kind:ident),* }
     structs { $($child:ident: $of:ident),* } lists { $($list:ident: $item:ident),* }) => {
        /// One of the language's own objects.
        #[derive(Archive, Serialize, Deserialize, Debug, Clone, PartialEq, Default)]
        #[rkyv(derive(PartialEq))]
        pub struct $own {
            $(pub $name: data_type!($kind),)*
            $(pub $child: $of,)*
            $(pub $list: Vec<$item>,)*
        }

        impl $own {
            pub fn read(reader: &mut Reader<'_>) -> Result<Self, Failure> {
                Ok(Self {
                    $($name: reader.$kind()?,)*
                    $($child: $of::read(reader)?,)*
                    $($list: (0..reader.count()?)
                        .map(|_| $item::read(reader))
                        .collect::<Result<_, _>>()?,)*
                })
            }

            pub fn sum(&self, h: &mut Checksum) {
                $(sum!($kind, h, self.$name);)*
                $(self.$child.sum(h);)*
                $(h.word(self.$list.len() as u64);
                  self.$list.iter().for_each(|item| item.sum(h));)*
            }
        }
    };
}
objects!(own);

/// What experiments do with one of the language's own objects.
pub trait Study: Sized + Default + Clone + PartialEq + Send + Sync + 'static {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Failure>;
    fn sum(&self) -> u64;
    /// Appends what the phase `grow` appends, if there is a list.
    fn grow(&mut self) -> Result<(), Failure>;
    /// An object that has nothing but this key and what `grow` appends.
    fn grown(key: i32) -> Result<Self, Failure>;
}

macro_rules! study {
    ($own:ident, $key:ident, $grow:expr) => {
        impl Study for $own {
            fn read(reader: &mut Reader<'_>) -> Result<Self, Failure> {
                Self::read(reader)
            }
            fn sum(&self) -> u64 {
                let mut h = Checksum::default();
                self.sum(&mut h);
                h.0
            }
            fn grow(&mut self) -> Result<(), Failure> {
                let grow: fn(&mut Self) -> Result<(), Failure> = $grow;
                grow(self)
            }
            fn grown(key: i32) -> Result<Self, Failure> {
                let mut grown = Self { $key: key, ..Self::default() };
                grown.grow()?;
                Ok(grown)
            }
        }
    };
}

study!(Part, part_key, |_| Err("only customers have a list that grows".into()));
study!(LineItem, order_key, |_| Err("only customers have a list that grows".into()));
study!(Customer, cust_key, |own| {
    own.orders.push(Order {
        order_key: -1,
        cust_key: own.cust_key,
        order_status: "O".to_owned(),
        total_price: 1.0,
        order_date: 0,
        order_priority: "5-LOW".to_owned(),
        clerk: "Clerk#000000001".to_owned(),
        ship_priority: 0,
        comment: "grown".to_owned(),
        line_items: Vec::new(),
    });
    Ok(())
});
