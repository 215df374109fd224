from companion.restore.pretrained import load as load
from companion.restore.pretrained import restore as restore
from companion.training.results import evaluate as evaluate
from companion.training.results import train as train

from .corruptions import TASKS as TASKS
from .experiment import Experiment as Experiment
from .network import NETWORKS as NETWORKS
from .network import EncoderDecoder as EncoderDecoder
from .network import ResidualUNet as ResidualUNet
from .rivals import SCHEDULES as SCHEDULES
from .sampler import Sampler as Sampler

__version__: str
PROTOCOL: int
