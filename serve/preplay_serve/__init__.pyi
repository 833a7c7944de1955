from .store import Store as Store
from .store import open_store as open_store
