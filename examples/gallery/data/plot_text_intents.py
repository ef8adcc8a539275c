"""
Private messages, sorted by intent
==================================

A bank wants to send each message to the right desk. Its own messages are private. A few messages for each
intent were written by staff, so anyone may see them. How much do these few help?
"""

# %%
# Messages
# --------
#
# Templates stand in for real messages. Each combination of an opening, a request and a closing occurs once.

import itertools

import numpy as np

openings = ["", "hello,", "please", "hi there,", "good morning,", "can you help?", "excuse me,", "urgent:"]
closings = ["", "thanks", "today", "as soon as possible", "if you can", "I am waiting", "it matters to me"]
requests = {
    "balance": ["show my balance", "how much money is left", "what is in my account", "is my salary there"],
    "lost card": ["my card is gone", "block my card", "I lost my card", "someone stole my card"],
    "new card": [
        "send me a new card",
        "order a second card",
        "my card is worn out",
        "when does my card come",
    ],
    "transfer": ["send money to my sister", "transfer my rent", "move money to savings", "wire 50 euros"],
    "rates": [
        "what is the exchange rate",
        "how many dollars for my money",
        "convert euros",
        "rate for pounds",
    ],
    "hours": ["when do you open", "are you open on Sunday", "where is a branch", "when do you close"],
}
messages = [
    (f"{before} {request} {after}".strip(), intent)
    for intent, phrases in requests.items()
    for before, request, after in itertools.product(openings, phrases, closings)
]
order = np.random.default_rng(0).permutation(len(messages))
texts, intents = (np.array(column)[order] for column in zip(*messages, strict=True))
print(f"{len(texts)} messages, such as: {texts[0]} ({intents[0]})")

# %%
# Rows
# ----
#
# ``HashingVectorizer`` has no vocabulary and no frequencies, so it learns nothing from private texts. A
# ``TfidfVectorizer`` would learn both, and would list a word that occurs in a single message.

from sklearn.feature_extraction.text import HashingVectorizer

vectorizer = HashingVectorizer(n_features=512, alternate_sign=False, ngram_range=(1, 2))
rows = vectorizer.transform(texts)
public, private, test = np.split(np.arange(len(texts)), [30, 1000])
print(f"{len(public)} public, {len(private)} private and {len(test)} test messages")

# %%
# Fits
# ----
#
# Private rows may stay sparse. Without public rows, the classes must be declared: reading them from private
# labels would be a leak.

import pandas as pd
from sklearn.linear_model import LogisticRegression

from skmixdp import MixedDPLogisticRegression

X_pub, y_pub = rows[public].toarray(), intents[public]
results = [
    {"method": "public rows alone", "accuracy": fitted.score(rows[test], intents[test])}
    for fitted in [LogisticRegression(C=10).fit(X_pub, y_pub)]
]
for epsilon, draw in itertools.product((0.3, 1.0, 3.0), range(3)):
    clf = MixedDPLogisticRegression(epsilon=epsilon, delta=1e-5, classes=list(requests))
    for method, given in (("private rows alone", {}), ("both", {"X_pub": X_pub, "y_pub": y_pub})):
        clf.fit(rows[private], intents[private], **given)
        accuracy = clf.score(rows[test], intents[test])
        results.append({"method": method, "epsilon": epsilon, "draw": draw, "accuracy": accuracy})

# %%
# Result
# ------
#
# The bars are standard deviations over three draws of the noise.

from skmixdp.inspection import PrivacyUtilityDisplay

display = PrivacyUtilityDisplay.from_results(pd.DataFrame(results), delta=1e-5)
display.ax_.set_title("Intents: 30 public and 970 private messages", loc="left")

# %%
# Thirty public messages alone make a weak classifier. As the start of private training they help most at
# the smallest budget, where noise hides what private messages say. From epsilon 1 on, private messages
# alone are nearly as good.

print(clf.predict(vectorizer.transform(["good morning, my card was stolen", "are you open today"])))
