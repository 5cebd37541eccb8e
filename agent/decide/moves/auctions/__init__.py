"""Steps for bids that are judged by auctions and do not set the price paid."""
