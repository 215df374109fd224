from .corruptions import TASKS as TASKS
from .evaluation import evaluate as evaluate
from .experiment import Experiment as Experiment
from .network import NETWORKS as NETWORKS
from .network import EncoderDecoder as EncoderDecoder
from .network import ResidualUNet as ResidualUNet
from .restoring.pretrained import load as load
from .restoring.pretrained import restore as restore
from .results import train as train
from .rivals import SCHEDULES as SCHEDULES
from .sampler import Sampler as Sampler

__version__: str
PROTOCOL: int
