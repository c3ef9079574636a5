"""Times a tuned matrix product on a device, and judges predictions, published times and searches by that."""
