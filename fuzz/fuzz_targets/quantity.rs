//! A text is a quantity or it is not; what is one keeps its amount in every form.
#![no_main]

use libfuzzer_sys::fuzz_target;
use supercargo_model::Quantity;

fuzz_target!(|text: &str| {
    match text.parse::<Quantity>() {
        Ok(quantity) => {
            whole_and_thousandths_agree(quantity);
            written_out_it_reads_the_same(quantity);
        }
        Err(error) => {
            let _ = (error.to_string(), error.hint());
        }
    }
});

fn whole_and_thousandths_agree(quantity: Quantity) {
    let (value, milli) = (quantity.value(), quantity.milli_value());
    if milli != i64::MAX && milli != i64::MIN {
        // Both round away from zero, so the thousandths decide the whole number.
        let away_from_zero = i64::from(milli % 1000 != 0) * milli.signum();
        assert_eq!(value, milli / 1000 + away_from_zero, "{quantity:?}");
    }
    assert_eq!(quantity.is_zero(), value == 0, "{quantity:?}");
}

fn written_out_it_reads_the_same(quantity: Quantity) {
    assert_eq!(quantity.to_string().parse(), Ok(quantity), "{quantity}");
}
