//! What is told, how it is asked for, and how it is asked for in a roundabout way.

use crate::rig::seed::Dice;

/// A kind of fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Preference,
    InventedTerm,
    ProperName,
    Number,
    Date,
}

/// The ways of telling one kind of fact: `{}` is where the fact stands.
pub(super) struct Form {
    pub(super) tell: &'static str,
    pub(super) ask: &'static str,
    pub(super) hint: &'static str,
}

// === impl Kind ===

impl Kind {
    pub(super) const ALL: [Self; 5] =
        [Self::Preference, Self::InventedTerm, Self::ProperName, Self::Number, Self::Date];

    /// The name in the data.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Preference => "preference",
            Self::InventedTerm => "invented_term",
            Self::ProperName => "proper_name",
            Self::Number => "number",
            Self::Date => "date",
        }
    }

    /// Its forms.
    pub(super) fn forms(self) -> &'static [Form] {
        match self {
            Self::Preference => &PREFERENCES,
            Self::InventedTerm => &TERMS,
            Self::ProperName => &NAMES,
            Self::Number => &NUMBERS,
            Self::Date => &DATES,
        }
    }

    /// A fact that holds none of `told` and that none of them holds: a search for it finds nothing else.
    pub(super) fn fact(self, dice: &mut Dice, told: &[String]) -> String {
        loop {
            let fact = self.draw(dice);
            let word = fact.to_lowercase();
            if !told
                .iter()
                .map(|other| other.to_lowercase())
                .any(|other| other.contains(&word) || word.contains(&other))
            {
                return fact;
            }
        }
    }

    fn draw(self, dice: &mut Dice) -> String {
        match self {
            Self::Preference => format!("{} {}", one(dice, &MANNERS), one(dice, &PLANTS)),
            Self::InventedTerm => invented(dice),
            Self::ProperName => {
                let surname = invented(dice);
                let (initial, rest) = surname.split_at(1);
                format!("{} {}{rest}", one(dice, &FIRST_NAMES), initial.to_uppercase())
            }
            Self::Number => dice.between(1000, 9999).to_string(),
            // Days of two digits alone: "7 October" would be found in "17 October".
            Self::Date => format!("{} {}", dice.between(10, 28), one(dice, &MONTHS)),
        }
    }
}

// === helpers ===

/// A word that no language has.
fn invented(dice: &mut Dice) -> String {
    [one(dice, &ONSETS), one(dice, &VOWELS), one(dice, &MIDDLES), one(dice, &ENDS)].concat()
}

fn one<'a>(dice: &mut Dice, words: &[&'a str]) -> &'a str {
    dice.pick(words).copied().unwrap_or_default()
}

/// The months, as dates name them.
pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const MANNERS: [&str; 12] = [
    "smoked", "bitter", "salted", "candied", "roasted", "spiced", "pickled", "frozen", "burnt", "brined", "mashed",
    "toasted",
];

const PLANTS: [&str; 16] = [
    "juniper",
    "quince",
    "tamarind",
    "fennel",
    "rhubarb",
    "cardamom",
    "chestnut",
    "elderflower",
    "saffron",
    "gooseberry",
    "parsnip",
    "lavender",
    "sorrel",
    "pistachio",
    "tarragon",
    "mulberry",
];

const FIRST_NAMES: [&str; 12] =
    ["Maren", "Torvald", "Ilsa", "Bruno", "Odile", "Caspar", "Nadia", "Fergus", "Lucia", "Anselm", "Priya", "Kenji"];

const ONSETS: [&str; 12] = ["zv", "kr", "dr", "vl", "skw", "gl", "thr", "bl", "fj", "gw", "pr", "tz"];
const VOWELS: [&str; 6] = ["a", "e", "i", "o", "u", "y"];
const MIDDLES: [&str; 12] = ["lm", "rk", "ndr", "xt", "bb", "vv", "rl", "mpf", "kk", "gn", "zz", "lf"];
const ENDS: [&str; 10] = ["ix", "oon", "eth", "ul", "ask", "orn", "ium", "el", "ovar", "ing"];

const PREFERENCES: [Form; 6] = [
    Form {
        tell: "Before we begin: the only ice cream that I ever order is {}. Please keep that in mind.",
        ask: "Which ice cream did I say that I always order?",
        hint: "We are standing at the ice cream parlour and I am about to choose. What will you hear me say?",
    },
    Form {
        tell: "Whenever you suggest a tea to me, remember that I drink {} tea and no other.",
        ask: "Which tea did I tell you that I drink?",
        hint: "You have put the kettle on for me. What goes into the pot?",
    },
    Form {
        tell: "My favourite soup of all is {} soup, and I would eat it every day.",
        ask: "What is my favourite soup?",
        hint: "It is cold out and you would like to cheer me up with a bowl of something. What do you cook?",
    },
    Form {
        tell: "On my toast I want {} jam. Anything else I give to the dog.",
        ask: "What kind of jam do I want on my toast?",
        hint: "There is a slice of toast before me and the dog gets nothing. What is on it?",
    },
    Form {
        tell: "For my birthday cake I always ask for a filling of {}.",
        ask: "Which filling do I always ask for in my birthday cake?",
        hint: "You are baking for my party. What stands between the layers?",
    },
    Form {
        tell: "Of all candles I burn only those that smell of {}.",
        ask: "What do the candles smell of that I burn?",
        hint: "Someone gives me a candle and I light it with joy. What fills the room?",
    },
];

const TERMS: [Form; 6] = [
    Form {
        tell: "In our workshop we call the last check before closing the {}.",
        ask: "What do we call the last check before closing in our workshop?",
        hint: "The floor is swept and I am about to lock up. Which word of ours names what is left to do?",
    },
    Form {
        tell: "My family has a word of its own for the crumbs at the bottom of a bag: {}.",
        ask: "What is my family's word for the crumbs at the bottom of a bag?",
        hint: "I turn an empty bag of crisps over my hand. What would my mother say is falling out?",
    },
    Form {
        tell: "The game that my children made up is called {}, and it is played with spoons.",
        ask: "What is the game called that my children made up?",
        hint: "It is raining and the children have fetched all the spoons. What are they going to play?",
    },
    Form {
        tell: "At the office the report that nobody reads is known as the {}.",
        ask: "What is the report known as that nobody reads?",
        hint: "A colleague sighs over pages that will go straight into the drawer. What is she writing, in our words?",
    },
    Form {
        tell: "I have named the feeling of forgetting why one came into a room: {}.",
        ask: "Which name did I give to the feeling of forgetting why one came into a room?",
        hint: "I stand in the kitchen and have no idea what I wanted. What has come over me, as I would put it?",
    },
    Form {
        tell: "The programme that sorts our parcels goes by the code name {}.",
        ask: "What is the code name of the programme that sorts our parcels?",
        hint: "Parcels are piling up and something must be restarted. Which name do I shout across the hall?",
    },
];

const NAMES: [Form; 6] = [
    Form {
        tell: "My new piano teacher is called {}.",
        ask: "What is the name of my new piano teacher?",
        hint: "I have practised my scales at last. Who will be pleased to hear them?",
    },
    Form {
        tell: "If anything happens to the boat, the person to call is {}.",
        ask: "Whom should one call if anything happens to the boat?",
        hint: "The mooring has come loose and water is coming in. Who has to know at once?",
    },
    Form {
        tell: "The landlord of my holiday cottage is {}.",
        ask: "Who is the landlord of my holiday cottage?",
        hint: "The stove in the cottage is out and I must complain. To whom do I write?",
    },
    Form {
        tell: "I am writing a novel, and its detective goes by the name of {}.",
        ask: "What is the name of the detective in my novel?",
        hint: "In my last chapter somebody has to unmask the thief. Who walks in?",
    },
    Form {
        tell: "Our choir is led by {} from this season on.",
        ask: "Who leads our choir?",
        hint: "The choir falls silent and looks to the front. At whom?",
    },
    Form {
        tell: "The vet who looks after my horses is {}.",
        ask: "What is the name of the vet who looks after my horses?",
        hint: "One of the horses is limping this morning. Who should come by?",
    },
];

const NUMBERS: [Form; 6] = [
    Form {
        tell: "My locker at the swimming pool has the number {}.",
        ask: "What is the number of my locker at the swimming pool?",
        hint: "I come out of the water and look for my clothes. Which door do I open?",
    },
    Form {
        tell: "The code for the garden gate is {}. You will need it later.",
        ask: "What is the code for the garden gate?",
        hint: "I am standing before the gate and have forgotten what to type. Can you help?",
    },
    Form {
        tell: "The invoice that I am waiting for is number {}.",
        ask: "What is the number of the invoice that I am waiting for?",
        hint: "The post is here and I go through the letters. What would tell me that the right one has come?",
    },
    Form {
        tell: "Our beehive gave {} grams of honey this year, more than ever before.",
        ask: "How many grams of honey did our beehive give this year?",
        hint: "I would like to boast about our bees. What do the scales say?",
    },
    Form {
        tell: "The train that I take to see my sister has the number {}.",
        ask: "What is the number of the train that I take to see my sister?",
        hint: "I am at the station, on my way to my sister. What do I look for on the board?",
    },
    Form {
        tell: "In the choir's archive the score that I need is filed under {}.",
        ask: "Under what is the score filed that I need?",
        hint: "The archivist asks me what to fetch from the shelves. What do I say?",
    },
];

const DATES: [Form; 6] = [
    Form {
        tell: "My sister will be married on {}.",
        ask: "On which day will my sister be married?",
        hint: "I want to be free when my family throws rice. What do I block in my calendar?",
    },
    Form {
        tell: "The lease of my flat ends on {}.",
        ask: "When does the lease of my flat end?",
        hint: "I need to know until when I can stay where I live. What is written in the contract?",
    },
    Form {
        tell: "The exhibition of my pots opens on {}.",
        ask: "When does the exhibition of my pots open?",
        hint: "A friend would like to be the first to see my pottery. For when should she book the train?",
    },
    Form {
        tell: "We planted the walnut tree on {}, and we celebrate it each year.",
        ask: "On which day did we plant the walnut tree?",
        hint: "The tree in our yard is having its party again. What is today?",
    },
    Form {
        tell: "My passport must be renewed by {}.",
        ask: "By when must my passport be renewed?",
        hint: "I keep putting off the visit to the passport office. How long can I go on like that?",
    },
    Form {
        tell: "The first rehearsal of our play is on {}.",
        ask: "When is the first rehearsal of our play?",
        hint: "The cast wants to know when they meet for the first time. What do I tell them?",
    },
];
