from odl import paper
from odl.experiment import PROFILES

p = PROFILES["paper"]
for shorter in (1, 10, 100):
    training = 3 * p["iterations"] / shorter * paper.BATCH_SIZE  # images forward; backward costs twice as much
    validation = paper.N_LEVELS * p["validation_images"]
    share = validation / (validation + training)
    print(f"epochs of {p['iterations'] // shorter:4d} iterations: validation is {share:.1%} of the arithmetic")
